package bundle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
)

// fleet is a tenant whose Bundle has four halted machines and a ConfigMap.
func fleet(t *testing.T) *tenant {
	x := start(t)
	x.grant("virtualmachines")
	x.bundle.Spec.Wait = new(bool)
	x.bundle.Spec.Prune.MaxFraction = "25%"
	for i := range 4 {
		name := fmt.Sprintf("vm-%d", i)
		x.repo.Commit(name+".yaml", strings.Replace(machine, "name: web", "name: "+name, 1))
	}
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	b := x.settle()
	x.ready(b, b.Status.LastAttemptedRevision)
	return x
}

// A commit that removes more machines than prune.maxFraction waits, whole, for an approval in the Bundle's spec.
func TestACommitThatRemovesTooManyMachinesWaits(t *testing.T) {
	x := fleet(t)
	good := x.drop("vm-0.yaml") // one of four may go
	x.ready(x.settle(), "main@sha1:"+good)
	x.drop("vm-1.yaml")
	x.repo.Commit("a.yaml", settings("a", "two"))
	hash := x.drop("vm-2.yaml")
	b := x.settle()
	x.failed(b, "ApprovalNeeded", hash, "2 of 3 VirtualMachines", "25%", "spec.prune.approved", "["+x.namespace+"/vm-1, "+x.namespace+"/vm-2]")
	m := &corev1.ConfigMap{}
	if x.exists(m, "a"); m.Data["value"] != "one" || b.Status.LastAppliedRevision != "main@sha1:"+good {
		t.Errorf("a part of it was applied: %v, %s", m.Data, b.Status.LastAppliedRevision)
	}
	if !x.exists(&v1.VirtualMachine{}, "vm-1") || !x.exists(&v1.VirtualMachine{}, "vm-2") {
		t.Fatal("removed without approval")
	}
	x.change(func(s *v1alpha1.BundleSpec) {
		s.Prune.Approved = []string{x.namespace + "/vm-1", x.namespace + "/vm-2"}
	})
	x.ready(x.settle(), "main@sha1:"+hash)
	if x.exists(&v1.VirtualMachine{}, "vm-1") || x.exists(&v1.VirtualMachine{}, "vm-2") || !x.exists(&v1.VirtualMachine{}, "vm-3") {
		t.Error("after the approval: not removed, or too much")
	}
}

// A machine that is protected is kept by a commit that drops it, is named, and goes when it is no longer protected.
func TestAProtectedMachineIsKept(t *testing.T) {
	x := fleet(t)
	vm := &v1.VirtualMachine{}
	x.exists(vm, "vm-0")
	protect := func(value string) {
		patch := `{"metadata":{"labels":{"kubevirt.io/vm-delete-protection":` + value + `}}}`
		if err := x.Client.Patch(t.Context(), vm, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	protect(`"True"`)
	hash := x.drop("vm-0.yaml")
	b := x.settle()
	x.ready(b, "main@sha1:"+hash)
	if _, _, message := condition(b, "Ready"); !x.exists(vm, "vm-0") || !strings.Contains(message, x.namespace+"_vm-0_") {
		t.Errorf("it is gone, or not named: %s", message)
	}
	protect("null")
	x.now = x.now.Add(10 * time.Minute)
	x.ready(x.settle(), "main@sha1:"+hash)
	if x.exists(vm, "vm-0") {
		t.Error("no longer protected, it is still there")
	}
}

// What the schema of the new fields refuses.
func TestPruneIsChecked(t *testing.T) {
	x := start(t)
	for name, change := range map[string]func(*v1alpha1.BundleSpec){
		"spec.prune.maxFraction": func(s *v1alpha1.BundleSpec) { s.Prune.MaxFraction = "0.2" },
		"spec.prune.approved":    func(s *v1alpha1.BundleSpec) { s.Prune.Approved = []string{"web"} },
		"spec.deletionPolicy":    func(s *v1alpha1.BundleSpec) { s.DeletionPolicy = "Sometimes" },
	} {
		b := x.bundle.DeepCopy()
		change(&b.Spec)
		if err := x.Client.Create(t.Context(), b); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The API server keeps the history, and it holds no write when nothing is new.
func TestHistoryIsKept(t *testing.T) {
	x := start(t)
	first := x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.settle()
	bad := x.repo.Commit("b.yaml", "kind: x\n")
	x.settle()
	last := x.drop("b.yaml")
	b := x.settle()
	var got []string
	for _, h := range b.Status.History {
		got = append(got, strings.TrimPrefix(h.Revision, "main@sha1:")+" "+h.Outcome)
	}
	want := []string{last + " ReconciliationSucceeded", bad + " BuildFailed", first + " ReconciliationSucceeded"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	x.writes.Store(0)
	x.now = x.now.Add(10 * time.Minute)
	x.settle()
	if n := x.writes.Load(); n != 0 {
		t.Errorf("a second sync wrote %d times", n)
	}
}
