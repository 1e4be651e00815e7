package plan

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/kube/condition"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/instancetype"
)

// inferAgain is how long after a volume said nothing about an instancetype it is asked again.
const inferAgain = 30 * time.Second

// StoreRevision stores an instancetype or preference as it is now, so that the VM keeps it.
type StoreRevision struct{ Revision *appsv1.ControllerRevision }

func (a StoreRevision) String() string { return "storing revision " + a.Revision.Name }

func stores(s Seen) []Action {
	var out []Action
	for _, r := range s.Types.Store {
		out = append(out, StoreRevision{r})
	}
	return out
}

// machine returns the VMI that the VM wants, expanded, or the condition that says why it can't be told. Where there is a
// VMI, what the VM leaves open is what it was when that was made.
func machine(s Seen) (*v1.VirtualMachineInstance, *condition.Want) {
	cfg := s.Config
	if s.VMI != nil {
		cfg = defaults.Recorded(s.VMI, cfg)
	}
	if s.VM.Spec.Instancetype == nil && s.VM.Spec.Preference == nil {
		return defaults.VMI(s.VM, cfg), nil
	}
	const kind = string(v1.VirtualMachineFailure)
	if m := s.Types.Missing; m != nil {
		reason := "FailedFindInstancetype"
		if m.Preference {
			reason = "FailedFindPreference"
		}
		c := condition.True(kind, reason, m.Message)
		return nil, &c
	}
	full, errs := instancetype.Expand(s.VM, s.Types.Choice, cfg)
	if len(errs) > 0 {
		c := condition.True(kind, "FailedCreate", errs.ToAggregate().Error())
		return nil, &c
	}
	vmi := defaults.VMI(full, cfg)
	for _, r := range s.Types.Used {
		vmi.Annotations[r.Annotation()] = r.Name
	}
	return vmi, nil
}

// unclear returns the condition of a VM whose machine can't be told; nil where it can.
func unclear(s Seen) *condition.Want {
	_, c := machine(s)
	return c
}

// awaited tells until when what is missing may come before the VM is called stalled, and whether something is.
func awaited(now time.Time, s Seen) (time.Time, bool) {
	if s.Types.Missing == nil {
		return time.Time{}, false
	}
	since, why := now, unclear(s)
	for _, c := range s.VM.Status.Conditions {
		if why != nil && c.Type == v1.VirtualMachineFailure && c.Reason == why.Reason {
			since = c.LastTransitionTime.Time
		}
	}
	return since.Add(troubleAfter), true
}
