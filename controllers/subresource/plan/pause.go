package plan

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/paths"
)

// Pause returns why a VMI can't be paused now, an API error; nil: it can.
func Pause(vmi *v1.VirtualMachineInstance) error {
	switch {
	case vmi.Status.Phase != v1.Running:
		return busy(vmi, "VM is not running")
	case vmi.Spec.LivenessProbe != nil && vmi.Spec.LivenessProbe.GuestAgentPing == nil:
		return apierrors.NewForbidden(v1.Resource("virtualmachineinstance"), vmi.Name,
			errors.New(mended(vmi, "spec.livenessProbe")+": Forbidden: the probe would fail while the guest is paused, and end it: take it out, or make it a guestAgentPing"))
	case paused(vmi):
		return busy(vmi, "VMI is already paused")
	}
	return nil
}

// mended returns a field of a VMI as it is called where its owner can change it.
func mended(vmi *v1.VirtualMachineInstance, field string) string {
	if owner := metav1.GetControllerOf(vmi); owner != nil && owner.Kind == v1.VirtualMachineGroupVersionKind.Kind {
		return paths.OfVM(field)
	}
	return field
}

// Unpause returns why a VMI can't be let go on now, an API error; nil: it can. vm is the VM that it is of, or nil.
func Unpause(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) error {
	switch {
	case vm != nil && vm.Status.SnapshotInProgress != nil:
		return busy(vmi, "VM snapshot is in progress")
	case vmi.Status.Phase != v1.Running:
		return busy(vmi, "VMI is not running")
	case !paused(vmi):
		return busy(vmi, "VMI is not paused")
	}
	return nil
}

// busy is the refusal of a VMI verb with HTTP status 409.
func busy(vmi *v1.VirtualMachineInstance, why string) error {
	return apierrors.NewConflict(v1.Resource("virtualmachineinstance"), vmi.Name, errors.New(why))
}

func paused(vmi *v1.VirtualMachineInstance) bool {
	for _, c := range vmi.Status.Conditions {
		if c.Type == v1.VirtualMachineInstancePaused {
			return c.Status == "True"
		}
	}
	return false
}
