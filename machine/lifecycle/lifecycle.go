// Package lifecycle says whether a VM should have a VMI now: run strategies, start and stop requests, and the pauses
// after failed starts.
package lifecycle

import (
	"fmt"

	v1 "kubevirt.io/api/core/v1"
)

// Verdict is what should be true of a VM's VMI.
type Verdict int

// The three verdicts.
const (
	// Keep leaves things as they are.
	Keep Verdict = iota
	// Present wants a VMI: one is made if there is none.
	Present
	// Absent wants none: one that is there is deleted.
	Absent
)

// Want is a verdict and its reason, a clause that fits after a colon.
type Want struct {
	VMI Verdict
	Why string
}

// Strategy returns a VM's run strategy; spec.running counts as Always or Halted, neither as Halted.
func Strategy(vm *v1.VirtualMachine) v1.VirtualMachineRunStrategy {
	switch {
	case vm.Spec.RunStrategy != nil:
		return *vm.Spec.RunStrategy
	case vm.Spec.Running != nil && *vm.Spec.Running:
		return v1.RunStrategyAlways
	}
	return v1.RunStrategyHalted
}

// Final tells whether a VMI's one run is over.
func Final(vmi *v1.VirtualMachineInstance) bool {
	return vmi.Status.Phase == v1.Succeeded || vmi.Status.Phase == v1.Failed
}

// NotRunning is the message of a condition Ready=False, reason GuestNotRunning, on VMs and VMIs alike: so it says the
// same before the VMI has a status and after.
const NotRunning = "the guest isn't running"

// Wanted tells whether the spec and the requests want a guest to run: a VM for which that doesn't hold is healthy
// without one.
func Wanted(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) bool {
	if vm.DeletionTimestamp != nil {
		return false
	}
	if want := For(vm, vmi); want.VMI == Present && (vmi == nil || !Final(vmi)) {
		return true
	}
	switch Strategy(vm) {
	case v1.RunStrategyAlways:
		return true
	case v1.RunStrategyRerunOnFailure:
		return vmi != nil && vmi.Status.Phase != v1.Succeeded || startAsked(vm)
	case v1.RunStrategyManual:
		return startAsked(vm)
	}
	return false
}

// For says what should be true of the VMI of vm; vmi is nil if there is none. It doesn't know of pauses: RetryAt does.
func For(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) Want {
	switch {
	case vm.DeletionTimestamp != nil:
		return Want{Absent, "the VM is being deleted"}
	case stopAsked(vm, vmi):
		return Want{Absent, "stop requested"}
	}
	switch s := Strategy(vm); s {
	case v1.RunStrategyHalted:
		return Want{Absent, "run strategy Halted"}
	case v1.RunStrategyAlways:
		return always(vmi)
	case v1.RunStrategyRerunOnFailure:
		return rerun(vm, vmi)
	case v1.RunStrategyManual:
		return manual(vm, vmi)
	case v1.RunStrategyOnce:
		return once(vm, vmi)
	default:
		return Want{Keep, fmt.Sprintf("run strategy %s is unknown", s)}
	}
}

func always(vmi *v1.VirtualMachineInstance) Want {
	if vmi != nil && Final(vmi) {
		return Want{Absent, "the guest ended and run strategy Always starts it anew"}
	}
	return Want{Present, "run strategy Always"}
}

func rerun(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) Want {
	switch {
	case vmi == nil && (startAsked(vm) || vm.Status.RunStrategy != v1.RunStrategyRerunOnFailure):
		return Want{Present, "run strategy RerunOnFailure"}
	case vmi == nil:
		return Want{Keep, "the guest was shut down or stopped"}
	case vmi.Status.Phase == v1.Failed && !startAsked(vm):
		return Want{Keep, "a start is about to be queued"}
	case vmi.Status.Phase == v1.Failed:
		return Want{Absent, "the guest failed and run strategy RerunOnFailure starts it anew"}
	case vmi.Status.Phase == v1.Succeeded:
		return Want{Absent, "the guest shut down"}
	}
	return Want{Keep, "run strategy RerunOnFailure"}
}

// once runs a guest again only when its VMI was deleted by somebody else: a stop that was asked for stays asked for.
func once(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) Want {
	if r := vm.Status.StateChangeRequests; vmi == nil && len(r) > 0 && r[0].Action == v1.StopRequest {
		return Want{Keep, "stop requested"}
	}
	return Want{Present, "run strategy Once"}
}

func manual(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) Want {
	switch {
	case !startAsked(vm):
		return Want{Keep, "run strategy Manual"}
	case vmi != nil && Final(vmi):
		return Want{Absent, "a start was requested and the guest's last run is over"}
	}
	return Want{Present, "start requested"}
}
