package vm

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"virtstack.io/virtstack/controllers/revision"
	"virtstack.io/virtstack/kube/loop"
	"virtstack.io/virtstack/machine/instancetype"
)

// waiting is the index of VMs by the instancetypes and preferences that they have no revision of.
const waiting = "virtstack.io/waits-for"

// waitsFor returns what an instancetype or preference must be called for the VM to look again.
func waitsFor(object client.Object) []string {
	vm, ok := object.(*v1.VirtualMachine)
	if !ok {
		return nil
	}
	var out []string
	for _, m := range instancetype.Matchers(vm) {
		if r, ok := m.Reference(vm.Namespace); ok && m.RevisionName == "" && !m.Kept(revision.Kept(vm, m)) {
			out = append(out, r.String())
		}
	}
	return out
}

// waiters returns a handler that looks again at the VMs that wait for an object of the kind.
func (c *Controller) waiters(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		name := instancetype.Reference{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}.String()
		list := &v1.VirtualMachineList{}
		if err := c.Client.List(ctx, list, client.MatchingFields{waiting: name}); err != nil {
			return nil // a cache that is gone: the process ends
		}
		return loop.Requests(list.Items)
	})
}

// store makes a revision, or finds the one that was made before a crash.
func (c *Controller) store(ctx context.Context, vm *v1.VirtualMachine, kept *appsv1.ControllerRevision) error {
	err := c.Client.Create(ctx, kept.DeepCopy(), client.FieldOwner(Manager))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	found := &appsv1.ControllerRevision{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(kept), found); err != nil {
		return err
	}
	if !metav1.IsControlledBy(found, vm) {
		return fmt.Errorf("ControllerRevision %s exists and isn't the VM's; delete it", kept.Name)
	}
	return nil
}
