package vmi

import (
	"errors"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/controllers/vmi/plan"
	"virtstack.io/virtstack/machine/config"
)

func keeping() *v1.VirtualMachineInstance {
	yes := true
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "web", UID: "vmi-1"}}
	vmi.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "web", UID: "vm-1", Controller: &yes}}
	vmi.Spec.Domain.Devices.TPM = &v1.TPMDevice{Persistent: &yes}
	return vmi
}

// The claim of a machine's state is made once, whatever a cache shows, and not taken from somebody else.
func TestStateIsClaimedOnce(t *testing.T) {
	vmi, cfg := keeping(), config.From(nil)
	c := claiming(t)
	claim, err := c.missingState(t.Context(), vmi, cfg)
	if err != nil || claim == nil {
		t.Fatalf("got %v, %v", claim, err)
	}
	for range 2 {
		if err := c.createClaim(t.Context(), plan.CreateClaim{VMI: vmi, Claim: claim}); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := c.missingState(t.Context(), vmi, cfg); err != nil || again != nil {
		t.Errorf("it is there, and %v, %v", again, err)
	}
	found := &k8sv1.PersistentVolumeClaim{}
	if err := c.Live.Get(t.Context(), client.ObjectKeyFromObject(claim), found); err != nil || found.OwnerReferences[0].UID != "vm-1" {
		t.Errorf("got %+v, %v", found, err)
	}
}

func TestAStrangersClaimIsNotTaken(t *testing.T) {
	vmi := keeping()
	claim := podspec.StateClaim(vmi, config.From(nil))
	strange := claim.DeepCopy()
	strange.OwnerReferences[0].UID = "vm-0"
	c := claiming(t, strange)
	err := c.createClaim(t.Context(), plan.CreateClaim{VMI: vmi, Claim: claim})
	if !errors.Is(err, errNotState) || !errors.As(err, &plan.StateError{}) {
		t.Errorf("got %v, want %v", err, errNotState)
	}
}

func TestAMachineThatKeepsNothingHasNoClaim(t *testing.T) {
	vmi := keeping()
	vmi.Spec.Domain.Devices.TPM.Persistent = nil
	if claim, err := claiming(t).missingState(t.Context(), vmi, config.From(nil)); claim != nil || err != nil {
		t.Errorf("got %v, %v", claim, err)
	}
}
