package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/kube/condition"
	"virtstack.io/virtstack/machine/lifecycle"
)

// Condition types and reasons that kubevirt.io/api has no constant for.
const (
	// Stalled is True when a deadline passed and nothing will change by itself; source: kstatus.
	Stalled = "Stalled"

	reasonUnsupported = "Unsupported"
	reasonNamesake    = "FailedCreate"
	reasonStart       = "StartFailed"
)

// settleAfter is how long a running guest's VM may wait to say so, for the VMI to say that it is ready: mostly it does
// by then, and one write is saved.
const settleAfter = 2 * time.Second

// settles returns until when the status may stay as it was; zero: it may not.
func settles(s Seen) time.Time {
	if s.VMI == nil || s.VMI.Status.Phase != v1.Running || s.VM.Status.ObservedGeneration != s.VM.Generation {
		return time.Time{}
	}
	c := vmiCondition(s.VMI, v1.VirtualMachineInstanceReady)
	if s.VMI.DeletionTimestamp != nil || c != nil && c.Reason != v1.GuestNotRunningReason {
		return time.Time{}
	}
	for _, t := range s.VMI.Status.PhaseTransitionTimestamps {
		if t.Phase == v1.Running {
			return t.PhaseTransitionTimestamp.Add(settleAfter)
		}
	}
	return time.Time{}
}

// said returns what the status says now, of what is this controller's to say.
func said(vm *v1.VirtualMachine) v1.VirtualMachineStatus {
	live := vm.DeepCopy().Status
	return v1.VirtualMachineStatus{
		Created: live.Created, Ready: live.Ready, PrintableStatus: live.PrintableStatus, RunStrategy: live.RunStrategy,
		Conditions: live.Conditions, StartFailure: live.StartFailure,
		ObservedGeneration: live.ObservedGeneration, DesiredGeneration: live.DesiredGeneration,
		InstancetypeRef: live.InstancetypeRef, PreferenceRef: live.PreferenceRef,
	}
}

func status(now time.Time, s Seen, failure *v1.VirtualMachineStartFailure) v1.VirtualMachineStatus {
	st := v1.VirtualMachineStatus{
		Created:            s.VMI != nil,
		Ready:              s.VMI != nil && vmiTrue(s.VMI, v1.VirtualMachineInstanceReady),
		RunStrategy:        strategy(s),
		StartFailure:       failure,
		ObservedGeneration: s.VM.Generation,
		DesiredGeneration:  s.VM.Generation,
		PrintableStatus:    printable(now, s, failure),
		InstancetypeRef:    s.Types.Instancetype,
		PreferenceRef:      s.Types.Preference,
	}
	var want []condition.Want
	if c := ready(s); c != nil {
		want = append(want, *c)
	}
	want = append(want, mirrored(s.VMI)...)
	if c := refused(s); c != nil {
		want = append(want, *c)
	} else if c := lastFailure(s, failure); c != nil {
		want = append(want, *c)
	}
	for _, c := range []*condition.Want{restart(s), word(now, s)} {
		if c != nil {
			want = append(want, *c)
		}
	}
	if stalled, _ := stall(now, s, failure); stalled {
		reason, message := trouble(s, failure)
		want = append(want, condition.True(Stalled, reason, message))
	}
	st.Conditions = condition.VM(now, s.VM.Status.Conditions, want...)
	return st
}

// Failed returns the status of a plan whose action failed.
func Failed(now time.Time, s Seen, p Plan, err error) v1.VirtualMachineStatus {
	if err == nil {
		return p.Status
	}
	s = s.effective(now)
	st := status(now, s, lifecycle.StartFailure(now, s.VM, s.VMI))
	if refused(s) != nil {
		return st
	}
	st.Conditions = slices.DeleteFunc(st.Conditions, func(c v1.VirtualMachineCondition) bool { return c.Type == v1.VirtualMachineFailure })
	return condition.Failed(st, now, s.VM.Status.Conditions, err)
}

// strategy returns the run strategy that was last acted on. RerunOnFailure starts a VM when it is new, so it is not
// recorded before there is a VMI.
func strategy(s Seen) v1.VirtualMachineRunStrategy {
	now := lifecycle.Strategy(s.VM)
	if now == v1.RunStrategyRerunOnFailure && s.VMI == nil && lifecycle.For(s.VM, nil).VMI == lifecycle.Present {
		return s.VM.Status.RunStrategy
	}
	return now
}

// ready returns the condition Ready; nil for a VM that wants no guest and has none, and for one that a person has
// paused: it is as ready as it was asked to be.
func ready(s Seen) *condition.Want {
	const kind = string(v1.VirtualMachineReady)
	var c condition.Want
	switch {
	case !lifecycle.Wanted(s.VM, s.VMI) && (s.VMI == nil || lifecycle.Final(s.VMI)):
		return nil
	case s.VMI != nil && s.VMI.Status.Phase == v1.Running && pausedByUser(s.VMI):
		return nil
	case s.VMI == nil:
		c = condition.False(kind, "VMINotExists", "VMI does not exist")
	case s.VMI.Status.Phase != v1.Running && s.VMI.DeletionTimestamp == nil && !lifecycle.Final(s.VMI):
		c = condition.False(kind, v1.GuestNotRunningReason, lifecycle.NotRunning)
	default:
		c = condition.False(kind, "VMIConditionMissing", "VMI is missing the Ready condition")
		if r := vmiCondition(s.VMI, v1.VirtualMachineInstanceReady); r != nil {
			c = condition.Want{Type: kind, Status: r.Status, Reason: r.Reason, Message: r.Message}
		}
	}
	return &c
}

// mirrored returns every condition of the VMI but Ready.
func mirrored(vmi *v1.VirtualMachineInstance) []condition.Want {
	if vmi == nil {
		return nil
	}
	var out []condition.Want
	for _, c := range vmi.Status.Conditions {
		if c.Type != v1.VirtualMachineInstanceReady {
			out = append(out, condition.Want{Type: string(c.Type), Status: c.Status, Reason: c.Reason, Message: c.Message})
		}
	}
	return out
}

// refused returns the condition Failure of a VM that can't have a VMI; nil where it can.
func refused(s Seen) *condition.Want {
	const kind = string(v1.VirtualMachineFailure)
	var c condition.Want
	switch {
	case s.VM.DeletionTimestamp != nil:
		return nil
	case unclear(s) != nil:
		return unclear(s)
	case s.VMI != nil:
		return nil
	case len(s.VM.Spec.DataVolumeTemplates) > 0:
		c = condition.True(kind, reasonUnsupported, "spec.dataVolumeTemplates: not supported yet")
	case s.Namesake && lifecycle.Wanted(s.VM, nil):
		c = condition.True(kind, reasonNamesake, "a VMI of this name exists and isn't this VM's; delete it")
	default:
		return nil
	}
	return &c
}

// lastFailure returns the condition Failure of a VM whose last start failed: it keeps what the VMI said, which is gone
// by the next try.
func lastFailure(s Seen, f *v1.VirtualMachineStartFailure) *condition.Want {
	if f == nil || f.ConsecutiveFailCount == 0 {
		return nil
	}
	const kind = string(v1.VirtualMachineFailure)
	if s.VMI != nil && s.VMI.UID == f.LastFailedVMIUID {
		c := condition.True(kind, reasonStart, "the guest ended before it ran")
		if t := troubled(s.VMI); t != nil {
			c.Message = t.Message
		}
		return &c
	}
	for _, c := range s.VM.Status.Conditions {
		if c.Type == v1.VirtualMachineFailure && c.Reason == reasonStart {
			return &condition.Want{Type: kind, Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
	}
	return nil
}

// namedFields is how many fields a condition names.
const namedFields = 5

// restart returns the condition of a VM whose running guest isn't what the spec says.
func restart(s Seen) *condition.Want {
	if s.VMI == nil || s.VMI.Status.Phase != v1.Running || s.VMI.DeletionTimestamp != nil {
		return nil
	}
	fields := outdated(s)
	if len(fields) == 0 {
		return nil
	}
	message := "a non-live-updatable field was changed in the template spec: " + strings.Join(fields[:min(len(fields), namedFields)], ", ")
	if more := len(fields) - namedFields; more > 0 {
		message += fmt.Sprintf(" and %d more", more)
	}
	c := condition.True(string(v1.VirtualMachineRestartRequired), "RestartRequired", message)
	return &c
}

func vmiCondition(vmi *v1.VirtualMachineInstance, kind v1.VirtualMachineInstanceConditionType) *v1.VirtualMachineInstanceCondition {
	for i := range vmi.Status.Conditions {
		if c := &vmi.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

func vmiTrue(vmi *v1.VirtualMachineInstance, kind v1.VirtualMachineInstanceConditionType) bool {
	c := vmiCondition(vmi, kind)
	return c != nil && c.Status == k8sv1.ConditionTrue
}

func pausedByUser(vmi *v1.VirtualMachineInstance) bool {
	c := vmiCondition(vmi, v1.VirtualMachineInstancePaused)
	return c != nil && c.Status == k8sv1.ConditionTrue && c.Reason == "PausedByUser"
}
