package vm_test

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/names"
)

// Case 54: what is made for a VM is its child, and carries nothing by which a Git tool would take it for its own and prune it,
// wherever on the VM the tool has put that.
func TestChildrenDoNotLookLikeGits(t *testing.T) {
	env, ns := start(t)
	tracked := map[string]string{
		"app.kubernetes.io/instance": "shop", "argocd.argoproj.io/instance": "shop", "kustomize.toolkit.fluxcd.io/name": "shop", "helm.toolkit.fluxcd.io/name": "shop",
	}
	size := small(ns, "small", 1)
	size.Labels = maps.Clone(tracked)
	put(t, env.Client, size)
	machine := early(ns, "web")
	machine.Labels, machine.Annotations = maps.Clone(tracked), map[string]string{"argocd.argoproj.io/tracking-id": "shop:kubevirt.io/VirtualMachine:x/web"}
	machine.Spec.Template.ObjectMeta.Labels, machine.Spec.Template.ObjectMeta.Annotations = maps.Clone(tracked), maps.Clone(machine.Annotations)
	machine.Spec.Template.ObjectMeta.Labels["tier"] = "front"
	put(t, env.Client, machine)
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	until(t, env.Client, vmi, func() bool { return true })
	if vmi.Labels["tier"] != "front" {
		t.Errorf("a label of the template isn't there: %v", vmi.Labels)
	}
	var revisions appsv1.ControllerRevisionList
	if err := env.Client.List(t.Context(), &revisions, client.InNamespace(ns)); err != nil || len(revisions.Items) == 0 {
		t.Fatalf("%d revisions: %v", len(revisions.Items), err)
	}
	children := []client.Object{vmi}
	for i := range revisions.Items {
		children = append(children, &revisions.Items[i])
	}
	for _, child := range children {
		if !metav1.IsControlledBy(child, machine) {
			t.Errorf("%T %s is owned by %v", child, child.GetName(), child.GetOwnerReferences())
		}
		if keys := slices.DeleteFunc(slices.AppendSeq(slices.Collect(maps.Keys(child.GetLabels())), maps.Keys(child.GetAnnotations())),
			func(key string) bool { return !names.Tracking(key) }); len(keys) > 0 {
			t.Errorf("%T %s has %v", child, child.GetName(), keys)
		}
	}
}
