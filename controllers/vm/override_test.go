package vm_test

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/override"
)

// A VM of Git's is stopped by an override and comes back at its end; the spec is never written.
func TestAnOverrideOfGit(t *testing.T) {
	env, ns := start(t)
	manifest := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": map[string]any{"namespace": ns, "name": "web"},
		"spec": map[string]any{"runStrategy": "Always", "template": map[string]any{"spec": map[string]any{
			"domain": map[string]any{"memory": map[string]any{"guest": "64Mi"}, "devices": map[string]any{}},
		}}},
	}}
	if err := env.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(manifest), client.FieldOwner("kustomize-controller")); err != nil {
		t.Fatal(err)
	}
	vm, vmi := &v1.VirtualMachine{}, &v1.VirtualMachineInstance{}
	vm.Namespace, vm.Name, vmi.Namespace, vmi.Name = ns, "web", ns, "web"
	until(t, env.Client, vmi, func() bool { return vmi.UID != "" })
	until(t, env.Client, vm, func() bool { return vm.Status.Created })

	o := override.Override{Until: time.Now().Add(10 * time.Second), Reason: "disk check", By: "ops"}
	user := apply.Applier{Client: env.Client, Manager: names.OverrideManager}
	if err := user.Metadata(t.Context(), vm, apply.Metadata{Annotations: map[string]string{names.RunOverride: o.Annotation()}}); err != nil {
		t.Fatal(err)
	}
	overridden := func() bool {
		return slices.ContainsFunc(vm.Status.Conditions, func(c v1.VirtualMachineCondition) bool { return c.Type == "Overridden" && c.Status == "True" })
	}
	until(t, env.Client, vmi, func() bool { return vmi.DeletionTimestamp != nil })
	vmi.Finalizers = nil // as the VMI's controller does
	if err := env.Client.Update(t.Context(), vmi); err != nil {
		t.Fatal(err)
	}
	until(t, env.Client, vm, func() bool {
		return overridden() && !vm.Status.Created && vm.Status.RunStrategy == v1.RunStrategyHalted
	})
	until(t, env.Client, vm, func() bool { return !overridden() && vm.Status.Created })
	if _, there := vm.Annotations[names.RunOverride]; there || vm.Generation != 1 || *vm.Spec.RunStrategy != v1.RunStrategyAlways {
		t.Errorf("at the end: annotations %v, generation %d, run strategy %s", vm.Annotations, vm.Generation, *vm.Spec.RunStrategy)
	}
}
