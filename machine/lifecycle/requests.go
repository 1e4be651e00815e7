package lifecycle

import (
	v1 "kubevirt.io/api/core/v1"
)

// startAsked tells whether a start is queued, behind a stop or not.
func startAsked(vm *v1.VirtualMachine) bool {
	for _, r := range vm.Status.StateChangeRequests {
		if r.Action == v1.StartRequest {
			return true
		}
	}
	return false
}

// stopAsked tells whether the first request stops this VMI.
func stopAsked(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) bool {
	r := vm.Status.StateChangeRequests
	return vmi != nil && len(r) > 0 && r[0].Action == v1.StopRequest && r[0].UID != nil && *r[0].UID == vmi.UID
}

// Requests returns the start and stop requests that are still to be met: a stop is met when its VMI is gone (under Once,
// which would run the guest again, it stays), a start when a VMI runs or the run strategy is Halted, which is the spec's to
// change (one that says how the guest is to begin is left, for virt-api writes it before the strategy). A guest that failed under
// RerunOnFailure adds a start, which is recorded before the VMI is deleted. The VM is not changed.
func Requests(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) []v1.VirtualMachineStateChangeRequest {
	var out []v1.VirtualMachineStateChangeRequest
	for _, r := range vm.Status.StateChangeRequests {
		if len(out) > 0 || !met(vm, vmi, r) {
			out = append(out, *r.DeepCopy())
		}
	}
	failed := vmi != nil && vmi.DeletionTimestamp == nil && vmi.Status.Phase == v1.Failed
	if failed && len(out) == 0 && Strategy(vm) == v1.RunStrategyRerunOnFailure && vm.DeletionTimestamp == nil {
		out = append(out, v1.VirtualMachineStateChangeRequest{Action: v1.StartRequest})
	}
	return out
}

// PausedAtFirst tells whether a start asks for a guest that waits at its first instruction.
func PausedAtFirst(r v1.VirtualMachineStateChangeRequest) bool {
	return r.Action == v1.StartRequest && r.Data[v1.StartRequestDataPausedKey] == v1.StartRequestDataPausedTrue
}

func met(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance, r v1.VirtualMachineStateChangeRequest) bool {
	switch r.Action {
	case v1.StopRequest:
		if vmi == nil {
			return Strategy(vm) != v1.RunStrategyOnce
		}
		return r.UID == nil || *r.UID != vmi.UID
	case v1.StartRequest:
		live := vmi != nil && vmi.DeletionTimestamp == nil && !Final(vmi)
		return live || Strategy(vm) == v1.RunStrategyHalted && !PausedAtFirst(r)
	}
	return true
}
