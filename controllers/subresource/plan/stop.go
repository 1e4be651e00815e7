package plan

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/override"
)

// Stop plans the stop of a VM, or returns an API error that refuses it. Nothing is written when it is refused.
func Stop(s Seen, o v1.StopOptions) ([]Action, error) {
	if o.GracePeriod != nil && *o.GracePeriod < 0 {
		return nil, apierrors.NewBadRequest("gracePeriod has to be greater or equal to 0")
	}
	actions, err := stop(s, o)
	if err != nil {
		return nil, err
	}
	if o.GracePeriod != nil && s.active() {
		actions = append([]Action{SetGrace{s.VMI, *o.GracePeriod}}, actions...)
	}
	return actions, nil
}

func stop(s Seen, o v1.StopOptions) ([]Action, error) {
	if a, err := overridden(s, false); a != nil || err != nil {
		return []Action{a}, err
	}
	s.VM = override.Effective(s.Now, s.VM)
	strategy, err := strategyOf(s.VM)
	if err != nil {
		return nil, err
	}
	switch strategy {
	case v1.RunStrategyAlways:
		if err := gitRefusal(s, false); err != nil {
			return nil, err
		}
		return []Action{SetStrategy{s.VM, false}}, nil
	case v1.RunStrategyHalted:
		return stopHalted(s, o)
	case v1.RunStrategyRerunOnFailure, v1.RunStrategyManual, v1.RunStrategyOnce, v1.RunStrategyWaitAsReceiver:
		if !s.active() && !(strategy == v1.RunStrategyRerunOnFailure && s.failing()) {
			return nil, Conflict(s.VM, "VM is not running")
		}
		return request(s, stopRequest(s.VMI))
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("spec.runStrategy: Unsupported value: %q", strategy))
}

// stopHalted hurries a guest that is already shutting down.
func stopHalted(s Seen, o v1.StopOptions) ([]Action, error) {
	if !s.active() {
		return nil, Conflict(s.VM, "VM is not running")
	}
	if o.GracePeriod == nil || *o.GracePeriod >= grace(s.VMI) {
		return nil, Conflict(s.VM, "%s only supports manual stop requests with a shorter graceperiod", v1.RunStrategyHalted)
	}
	return request(s, stopRequest(s.VMI))
}

// active reports whether the VM has a VMI that isn't done.
func (s Seen) active() bool { return s.VMI != nil && !s.VMI.IsFinal() }

// failing reports whether the VM is between two tries.
func (s Seen) failing() bool {
	return s.VM.Status.StartFailure != nil || s.VMI != nil && s.VMI.Status.Phase == v1.Failed
}

// grace returns the seconds that a guest has to shut down.
func grace(vmi *v1.VirtualMachineInstance) int64 {
	if g := vmi.Spec.TerminationGracePeriodSeconds; g != nil {
		return *g
	}
	return v1.DefaultGracePeriodSeconds
}
