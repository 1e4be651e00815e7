package lifecycle

import (
	"time"

	v1 "kubevirt.io/api/core/v1"
)

// wordUntil is the key, in a start request's data, of when it is forgotten under run strategy Halted.
const wordUntil = "virtstack.io/until"

// wordLasts is how long virt-api may take to set the run strategy after it has said how the guest is to begin: two writes
// that follow each other, and clocks that differ.
const wordLasts = 30 * time.Second

// PausedStart is the request that the guest of a halted VM wait at its first instruction. It is written before the run
// strategy: where that never comes, it holds for none that comes later.
func PausedStart(now time.Time) v1.VirtualMachineStateChangeRequest {
	return v1.VirtualMachineStateChangeRequest{Action: v1.StartRequest, Data: map[string]string{
		v1.StartRequestDataPausedKey: v1.StartRequestDataPausedTrue,
		wordUntil:                    now.Add(wordLasts).UTC().Format(time.RFC3339),
	}}
}

// until returns when a request of a halted VM is forgotten: the past for one that isn't PausedStart's.
func until(r v1.VirtualMachineStateChangeRequest) time.Time {
	if !PausedAtFirst(r) {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, r.Data[wordUntil])
	if err != nil {
		return time.Time{}
	}
	return t
}

// ForgetsAt returns when the first request of a halted VM is to be looked at again; zero: it has none that waits.
func ForgetsAt(vm *v1.VirtualMachine) time.Time {
	if r := vm.Status.StateChangeRequests; len(r) > 0 && Strategy(vm) == v1.RunStrategyHalted {
		return until(r[0])
	}
	return time.Time{}
}

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
// change (PausedStart is left for as long as the strategy may take to follow). A guest that failed under RerunOnFailure
// adds a start, which is recorded before the VMI is deleted. The VM is not changed.
func Requests(now time.Time, vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) []v1.VirtualMachineStateChangeRequest {
	var out []v1.VirtualMachineStateChangeRequest
	for _, r := range vm.Status.StateChangeRequests {
		if len(out) > 0 || !met(now, vm, vmi, r) {
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

func met(now time.Time, vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance, r v1.VirtualMachineStateChangeRequest) bool {
	switch r.Action {
	case v1.StopRequest:
		if vmi == nil {
			return Strategy(vm) != v1.RunStrategyOnce
		}
		return r.UID == nil || *r.UID != vmi.UID
	case v1.StartRequest:
		live := vmi != nil && vmi.DeletionTimestamp == nil && !Final(vmi)
		return live || Strategy(vm) == v1.RunStrategyHalted && !now.Before(until(r))
	}
	return true
}
