package plan

import (
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/kube/condition"
	"virtstack.io/virtstack/machine/override"
)

// Overridden is True while a user's word holds in place of a run strategy that comes from Git.
const Overridden = "Overridden"

// TellOverride says that an override has begun to hold, or says something else than before.
type TellOverride struct {
	VM       *v1.VirtualMachine
	Override override.Override
}

// DropOverride takes an override away that virt-api wrote and that is over.
type DropOverride struct{ VM *v1.VirtualMachine }

func (a TellOverride) String() string { return "telling of the override of VM " + a.VM.Name }
func (a DropOverride) String() string { return "dropping the override of VM " + a.VM.Name }

// word returns the condition Overridden; nil where there is no override.
func word(now time.Time, s Seen) *condition.Want {
	var c condition.Want
	if o := override.Active(now, s.VM); o != nil {
		c = condition.True(Overridden, "ByUser", o.String())
		return &c
	}
	if _, err := override.Of(s.VM); err != nil {
		c = condition.False(Overridden, "Unreadable", err.Error())
		return &c
	}
	return nil
}

// spoken are the actions about a VM's override itself.
func spoken(now time.Time, s Seen) []Action {
	carried, _ := override.Of(s.VM)
	active := override.Active(now, s.VM)
	switch {
	case active != nil && !told(s.VM, active):
		return []Action{TellOverride{s.VM, *active}}
	case active == nil && carried != nil && s.OverrideIsOurs:
		return []Action{DropOverride{s.VM}}
	}
	return nil
}

func told(vm *v1.VirtualMachine, o *override.Override) bool {
	for _, c := range vm.Status.Conditions {
		if c.Type == Overridden {
			return c.Status == k8sv1.ConditionTrue && c.Message == o.String()
		}
	}
	return false
}
