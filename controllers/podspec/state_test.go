package podspec_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/machine/config"
)

func TestStateHasAClaim(t *testing.T) {
	cfg := config.From(&v1.KubeVirt{Spec: v1.KubeVirtSpec{Configuration: v1.KubeVirtConfiguration{VMStateStorageClass: "kept"}}})
	golden(t, "testdata/state.golden", podspec.StateClaim(read(t, "testdata/kept.yaml"), cfg))
	if claim := podspec.StateClaim(read(t, "testdata/kept.yaml"), emulated()); claim.Spec.StorageClassName != nil {
		t.Errorf("class %q, want the cluster's default", *claim.Spec.StorageClassName)
	}
	if claim := podspec.StateClaim(read(t, "testdata/web.yaml"), cfg); claim != nil {
		t.Errorf("a machine that keeps nothing has claim %s", claim.Name)
	}
}

// A claim is its machine's: one made again under the same name, or a VMI without a VM, has another.
func TestStateIsItsOwners(t *testing.T) {
	long, yes := strings.Repeat("long.name-", 25)+"end", true
	seen := map[string]bool{}
	for _, owner := range []metav1.OwnerReference{
		{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: long, UID: "one", Controller: &yes},
		{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: long, UID: "two", Controller: &yes},
		{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstanceReplicaSet", Name: "set", UID: "three", Controller: &yes},
	} {
		vmi := read(t, "testdata/kept.yaml")
		vmi.Name, vmi.OwnerReferences = long, []metav1.OwnerReference{owner}
		claim := podspec.StateClaim(vmi, emulated())
		if errs := validation.IsDNS1123Subdomain(claim.Name); len(errs) > 0 || seen[claim.Name] {
			t.Errorf("%q: seen before %t, %v", claim.Name, seen[claim.Name], errs)
		}
		if errs := validation.IsValidLabelValue(claim.Labels["persistent-state-for"]); len(errs) > 0 {
			t.Errorf("label of %q: %v", claim.Name, errs)
		}
		if uid := claim.OwnerReferences[0].UID; owner.UID != "three" && uid != owner.UID || owner.UID == "three" && uid != vmi.UID {
			t.Errorf("claim of %s belongs to %s", owner.UID, uid)
		}
		seen[claim.Name] = true
	}
}
