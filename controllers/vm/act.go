package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/condition"
	"virtstack.io/virtstack/kube/note"
	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/paths"
)

// errTaken is returned where the name of a VM's VMI is someone else's.
var errTaken = errors.New("a VMI of that name exists and isn't the VM's; delete it")

// act does what was planned for vm, in order, until something fails.
func (c *Controller) act(ctx context.Context, vm *v1.VirtualMachine, actions []plan.Action) error {
	for _, a := range actions {
		if err := c.do(ctx, vm, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

func (c *Controller) do(ctx context.Context, vm *v1.VirtualMachine, a plan.Action) error {
	switch a := a.(type) {
	case plan.HoldVM:
		return c.applier().Metadata(ctx, vm, apply.Metadata{Finalizers: []string{v1.VirtualMachineControllerFinalizer}})
	case plan.ReleaseVM:
		return client.IgnoreNotFound(c.applier().Release(ctx, vm, v1.VirtualMachineControllerFinalizer))
	case plan.StoreRevision:
		return c.failing(vm, "FailedCreate", "StoreRevision", c.store(ctx, vm, a.Revision))
	case plan.StartVMI:
		return c.failing(vm, "FailedCreate", "StartVMI", c.start(ctx, vm, a))
	case plan.StopVMI:
		return c.failing(vm, "FailedDelete", "StopVMI", c.stop(ctx, vm, a))
	case plan.RelabelVMI:
		return c.applier().Relabel(ctx, a.VMI, a.Labels, a.Annotations)
	case plan.TellOverride:
		c.Events.Eventf(vm, nil, k8sv1.EventTypeNormal, plan.Overridden, "Override", "In place of what Git says holds %s", note.Of(a.Override))
		return nil
	case plan.DropOverride:
		return c.dropOverride(ctx, vm)
	case plan.SetRequests:
		return c.setRequests(ctx, vm, map[string]any{"stateChangeRequests": a.Requests})
	case plan.SetDump:
		return c.setRequests(ctx, vm, map[string]any{"memoryDumpRequest": a.Request})
	case plan.AskDump:
		return c.failing(vm, "MemoryDumpError", "MemoryDump", c.askDump(ctx, a))
	case plan.NameDump:
		return c.failing(vm, "MemoryDumpError", "MemoryDump", c.nameDump(ctx, vm, a))
	}
	return fmt.Errorf("no way to do %T", a)
}

// failing gives an error of the VMI the reason of its condition and the paths of the VM, and tells the VM's owner. A
// conflict is looked at again.
func (c *Controller) failing(vm *v1.VirtualMachine, reason, action string, err error) error {
	if err == nil || apierrors.IsConflict(err) {
		return err
	}
	err = paths.Error{Err: err}
	if !apierrors.HasStatusCause(err, k8sv1.NamespaceTerminatingCause) {
		c.Events.Eventf(vm, nil, k8sv1.EventTypeWarning, reason, action, "%s", note.Of(err))
	}
	return &condition.Failure{Reason: reason, Err: err}
}

// start makes the VMI, or finds the one that was made before a crash.
func (c *Controller) start(ctx context.Context, vm *v1.VirtualMachine, a plan.StartVMI) error {
	err := c.Client.Create(ctx, a.VMI.DeepCopy(), client.FieldOwner(Manager))
	if apierrors.IsAlreadyExists(err) {
		return c.mine(ctx, vm)
	}
	if err != nil {
		return err
	}
	c.Events.Eventf(vm, nil, k8sv1.EventTypeNormal, "SuccessfulCreate", "StartVMI", "Started VM by creating VMI %s: %s", a.VMI.Name, a.Why)
	return nil
}

// mine asks the API server whether the VMI that is there is the VM's.
func (c *Controller) mine(ctx context.Context, vm *v1.VirtualMachine) error {
	found := &v1.VirtualMachineInstance{}
	if err := c.Live.Get(ctx, client.ObjectKeyFromObject(vm), found); err != nil {
		return err
	}
	if !metav1.IsControlledBy(found, vm) {
		return errTaken
	}
	return nil
}

// stop deletes the VMI if it still is what was seen: a guest that a cache shows as not started may run by now.
func (c *Controller) stop(ctx context.Context, vm *v1.VirtualMachine, a plan.StopVMI) error {
	err := c.Client.Delete(ctx, a.VMI, client.Preconditions{UID: &a.VMI.UID, ResourceVersion: &a.VMI.ResourceVersion})
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	c.Events.Eventf(vm, nil, k8sv1.EventTypeNormal, "SuccessfulDelete", "StopVMI", "Stopped VM (%s) by deleting the VMI with uid %s", a.Why, a.VMI.UID)
	return nil
}

func (c *Controller) dropOverride(ctx context.Context, vm *v1.VirtualMachine) error {
	if err := c.overrides().Metadata(ctx, vm, apply.Metadata{}); err != nil {
		return err
	}
	c.Events.Eventf(vm, nil, k8sv1.EventTypeNormal, "OverrideEnded", "Override", "What Git says holds again: run strategy %s", lifecycle.Strategy(vm))
	return nil
}

// setRequests replaces requests in a VM's status, unless some were added since they were seen.
func (c *Controller) setRequests(ctx context.Context, vm *v1.VirtualMachine, status map[string]any) error {
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": vm.UID, "resourceVersion": vm.ResourceVersion},
		"status":   status,
	})
	if err != nil {
		return err
	}
	object := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: vm.Namespace, Name: vm.Name}}
	err = c.Client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, body), client.FieldOwner(Manager+"-requests"))
	if err == nil {
		vm.ResourceVersion = object.ResourceVersion
	}
	return err
}
