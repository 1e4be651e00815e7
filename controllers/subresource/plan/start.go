package plan

import (
	"fmt"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/override"
)

// Start plans the start of a VM, or returns an API error that refuses it.
func Start(s Seen, o v1.StartOptions) ([]Action, error) {
	if s.Asked != nil && o.Paused {
		return nil, apierrors.NewBadRequest("paused: Forbidden: a start that is an override can't leave the guest paused")
	}
	if a, err := overridden(s, true); a != nil || err != nil {
		return []Action{a}, err
	}
	s.VM = override.Effective(s.Now, s.VM)
	if err := startable(s); err != nil {
		return nil, err
	}
	strategy, err := strategyOf(s.VM)
	if err != nil {
		return nil, err
	}
	switch strategy {
	case v1.RunStrategyHalted:
		return startHalted(s, o)
	case v1.RunStrategyRerunOnFailure, v1.RunStrategyManual:
		return startRequested(s, o, strategy)
	case v1.RunStrategyWaitAsReceiver:
		return nil, nil // it runs when its guest arrives
	case v1.RunStrategyAlways:
		if s.VM.Status.StartFailure != nil {
			return []Action{RetryNow{s.VM}}, nil
		}
	case v1.RunStrategyOnce:
	default:
		return nil, apierrors.NewInternalError(fmt.Errorf("spec.runStrategy: Unsupported value: %q", strategy))
	}
	return nil, Conflict(s.VM, "%s does not support manual start requests", strategy)
}

func startable(s Seen) error {
	if s.Namesake {
		return Conflict(s.VM, "a VMI of this name exists and isn't this VM's: delete VMI %s, then start the VM", s.VM.Name)
	}
	if s.VMI != nil && !s.VMI.IsFinal() && !s.VMI.IsUnknown() && s.VMI.Status.Phase != v1.VmPhaseUnset {
		return Conflict(s.VM, "VM is already running")
	}
	if holds(s.VM, v1.VirtualMachineManualRecoveryRequired) {
		return Conflict(s.VM, "VM needs manual recovery after a failed volume migration: "+
			"put the volumes of spec.template back to those that hold the data, then start it")
	}
	return nil
}

// startHalted makes the VM run for good.
func startHalted(s Seen, o v1.StartOptions) ([]Action, error) {
	if err := gitRefusal(s, true); err != nil {
		return nil, err
	}
	if !o.Paused && len(s.VM.Status.StateChangeRequests) == 0 {
		return []Action{SetStrategy{s.VM, true}}, nil
	}
	return []Action{StartHalted{s.VM, o.Paused, s.Now}}, nil
}

// StartHalted makes a halted VM run for good, its guest paused at first where that is asked for. It takes two writes, for
// the spec has no place for the pause: word of it is in the status before the strategy is set. Of a start that was cut off
// between the two the word is left, which the next start replaces, and the VM controller after a while.
type StartHalted struct {
	VM     *v1.VirtualMachine
	Paused bool
	Now    time.Time
}

func (a StartHalted) String() string {
	how := ""
	if a.Paused {
		how = ", paused at first"
	}
	return SetStrategy{a.VM, true}.String() + how
}

// Word is the first of the two writes.
func (a StartHalted) Word() Request {
	if !a.Paused {
		return Request{VM: a.VM}
	}
	return Request{a.VM, []v1.VirtualMachineStateChangeRequest{lifecycle.PausedStart(a.Now)}}
}

// startRequested asks for a start. A VM between two tries is not asked again but tries at once.
func startRequested(s Seen, o v1.StartOptions, strategy v1.VirtualMachineRunStrategy) ([]Action, error) {
	failed := strategy == v1.RunStrategyRerunOnFailure && s.VMI != nil && s.VMI.Status.Phase == v1.Failed
	queued := asks(s.VM.Status.StateChangeRequests, v1.StartRequest)
	switch {
	case (failed || queued) && s.VM.Status.StartFailure != nil:
		return []Action{RetryNow{s.VM}}, nil
	case failed:
		return nil, Conflict(s.VM, "%s does not support starting VM from failed state", strategy)
	}
	return request(s, afresh(s, startAs(o))...)
}

// afresh is a start; a VMI that is done is taken away before.
func afresh(s Seen, start v1.VirtualMachineStateChangeRequest) []v1.VirtualMachineStateChangeRequest {
	if s.VMI != nil && s.VMI.IsFinal() {
		return []v1.VirtualMachineStateChangeRequest{stopRequest(s.VMI), start}
	}
	return []v1.VirtualMachineStateChangeRequest{start}
}

func holds(vm *v1.VirtualMachine, condition v1.VirtualMachineConditionType) bool {
	for _, c := range vm.Status.Conditions {
		if c.Type == condition {
			return c.Status == k8sv1.ConditionTrue
		}
	}
	return false
}
