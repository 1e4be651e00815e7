package plan

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/override"
)

// Restart plans the restart of a VM, or returns an API error that refuses it. It never touches the spec.
func Restart(s Seen, o v1.RestartOptions) ([]Action, error) {
	s.VM = override.Effective(s.Now, s.VM)
	if err := restartable(s, o); err != nil {
		return nil, err
	}
	actions, err := request(s, stopRequest(s.VMI), startRequest())
	if err != nil {
		return nil, err
	}
	if o.GracePeriodSeconds != nil && s.active() {
		actions = append(actions, KillLauncher{s.VMI})
	}
	return actions, nil
}

func restartable(s Seen, o v1.RestartOptions) error {
	if g := o.GracePeriodSeconds; g != nil && *g > 0 {
		return apierrors.NewBadRequest("For force restart, only gracePeriod=0 is supported for now")
	} else if g != nil && *g < 0 {
		return apierrors.NewBadRequest("gracePeriod has to be greater or equal to 0")
	}
	if holds(s.VM, v1.VirtualMachineConditionType(v1.VirtualMachineInstanceVolumesChange)) {
		return Conflict(s.VM, "VM has a change of its volumes under way: restart it when condition VolumesChange is gone")
	}
	strategy, err := strategyOf(s.VM)
	if err != nil {
		return err
	}
	if strategy == v1.RunStrategyHalted || strategy == v1.RunStrategyOnce {
		return Conflict(s.VM, "RunStategy %s does not support manual restart requests", strategy)
	}
	if s.VMI == nil {
		return Conflict(s.VM, "VM is not running: %s", v1.RunStrategyHalted)
	}
	return nil
}
