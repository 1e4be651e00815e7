// Package plan decides what is done for one VM: whether it has a VMI, and what its status says. It is pure.
package plan

import (
	"reflect"
	"slices"
	"strconv"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/change"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/instancetype"
	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/mirror"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/override"
	"virtstack.io/virtstack/machine/paths"
)

// Seen is one round's facts; nil: the API server has none.
type Seen struct {
	VM  *v1.VirtualMachine
	VMI *v1.VirtualMachineInstance
	// Namesake says that there is a VMI of the VM's name that isn't the VM's.
	Namesake bool
	Config   config.Config
	// Labels and Annotations are the keys that this controller has set on the VMI.
	Labels, Annotations []string
	Types               instancetype.Found
	// OverrideIsOurs says that virt-api wrote the VM's override: one that comes from Git is not dropped at its end.
	OverrideIsOurs bool
}

// Plan is what one round does.
type Plan struct {
	Actions []Action // in order; the first that fails ends the list
	Status  v1.VirtualMachineStatus
	Recheck time.Time // zero: nothing to wait for but change
}

// Action is one thing done to the cluster. Its String is a gerund.
type Action interface{ String() string }

// HoldVM puts the finalizer on the VM, so that it outlives its VMI.
type HoldVM struct{ VM *v1.VirtualMachine }

// StartVMI creates the VMI.
type StartVMI struct {
	VMI *v1.VirtualMachineInstance
	Why string
}

// StopVMI deletes the VMI that was seen.
type StopVMI struct {
	VMI *v1.VirtualMachineInstance
	Why string
}

// RelabelVMI brings the VMI's labels and annotations to the template's.
type RelabelVMI struct {
	VMI                 *v1.VirtualMachineInstance
	Labels, Annotations mirror.Change
}

// SetRequests replaces the start and stop requests that were seen.
type SetRequests struct {
	VM       *v1.VirtualMachine
	Requests []v1.VirtualMachineStateChangeRequest
}

// ReleaseVM takes the finalizer off a deleted VM.
type ReleaseVM struct{ VM *v1.VirtualMachine }

func (a HoldVM) String() string     { return "holding VM " + a.VM.Name }
func (a StartVMI) String() string   { return "starting VMI " + a.VMI.Name + ": " + a.Why }
func (a StopVMI) String() string    { return "stopping VMI " + a.VMI.Name + ": " + a.Why }
func (a RelabelVMI) String() string { return "labelling VMI " + a.VMI.Name + " as its template" }
func (a SetRequests) String() string {
	return "leaving " + strconv.Itoa(len(a.Requests)) + " requests of VM " + a.VM.Name
}
func (a ReleaseVM) String() string { return "releasing VM " + a.VM.Name }

// effective returns s as it counts: the VM as an override has it, and what the VMI says of itself with the paths of the
// VM's fields, for those are the ones that its owner can change.
func (s Seen) effective(now time.Time) Seen {
	s.VM = override.Effective(now, s.VM)
	if s.VMI == nil {
		return s
	}
	vmi := *s.VMI
	vmi.Status.Conditions = slices.Clone(vmi.Status.Conditions)
	for i := range vmi.Status.Conditions {
		c := &vmi.Status.Conditions[i]
		c.Message = paths.OfVM(c.Message)
	}
	s.VMI = &vmi
	return s
}

// For plans one round.
func For(now time.Time, s Seen) Plan {
	s = s.effective(now)
	failure := lifecycle.StartFailure(now, s.VM, s.VMI)
	left := lifecycle.Requests(now, s.VM, s.VMI)
	switch {
	case s.VM.DeletionTimestamp != nil:
		return takeDown(now, s, failure)
	case counted(s.VM, failure): // recorded before the VMI that it counts is deleted
		return finish(now, s, failure, Plan{})
	case !reflect.DeepEqual(left, s.VM.Status.StateChangeRequests) && len(left)+len(s.VM.Status.StateChangeRequests) > 0:
		return finish(now, s, failure, Plan{Actions: []Action{SetRequests{s.VM, left}}})
	}
	p := act(now, s, failure)
	dumps, at := dump(now, s)
	p.Actions = slices.Concat(dumps, spoken(now, s), stores(s), p.Actions)
	p.Recheck = earliest(earliest(p.Recheck, at), lifecycle.ForgetsAt(s.VM))
	if o := override.Active(now, s.VM); o != nil {
		p.Recheck = earliest(p.Recheck, o.Until)
	}
	return finish(now, s, failure, p)
}

// counted tells whether this round counts another failed start.
func counted(vm *v1.VirtualMachine, f *v1.VirtualMachineStartFailure) bool {
	return f != nil && f.ConsecutiveFailCount > 0 &&
		(vm.Status.StartFailure == nil || vm.Status.StartFailure.LastFailedVMIUID != f.LastFailedVMIUID)
}

// act brings the VMI to what the run strategy and the requests want.
func act(now time.Time, s Seen, failure *v1.VirtualMachineStartFailure) Plan {
	want := lifecycle.For(s.VM, s.VMI)
	live := s.VMI != nil && s.VMI.DeletionTimestamp == nil
	switch {
	case want.VMI == lifecycle.Absent && live:
		return Plan{Actions: []Action{StopVMI{s.VMI, want.Why}}}
	case live && want.VMI == lifecycle.Present && superseded(s):
		return Plan{Actions: []Action{StopVMI{s.VMI, "the VM's spec changed before the guest ran"}}}
	case live && !lifecycle.Final(s.VMI):
		return Plan{Actions: relabel(s)}
	case want.VMI != lifecycle.Present || s.VMI != nil || refused(s) != nil:
		return Plan{}
	}
	if at := lifecycle.RetryAt(s.VM, failure); now.Before(at) {
		return Plan{Recheck: at}
	}
	vmi, _ := machine(s) // not refused, so there is one
	return Plan{Actions: append(hold(s.VM), StartVMI{vmi, want.Why})}
}

// finish adds the status, as if the plan's start had succeeded: so that the VMI, once seen, changes nothing.
func finish(now time.Time, s Seen, failure *v1.VirtualMachineStartFailure, p Plan) Plan {
	for _, a := range p.Actions {
		if start, ok := a.(StartVMI); ok {
			s.VMI = start.VMI
		}
	}
	if at := settles(s); now.Before(at) {
		p.Status, p.Recheck = said(s.VM), earliest(p.Recheck, at)
		return p
	}
	p.Status = status(now, s, failure)
	stalled, at := stall(now, s, failure)
	if !stalled {
		p.Recheck = earliest(p.Recheck, at)
	}
	if m := s.Types.Missing; m != nil && m.Infer {
		p.Recheck = earliest(p.Recheck, now.Add(inferAgain))
	}
	return p
}

// hold returns the action that a VM needs before its first VMI.
func hold(vm *v1.VirtualMachine) []Action {
	if slices.Contains(vm.Finalizers, v1.VirtualMachineControllerFinalizer) {
		return nil
	}
	return []Action{HoldVM{vm}}
}

// takeDown deletes the VMI and then lets the VM go. A VM that is deleted without its dependents leaves its VMI alone.
func takeDown(now time.Time, s Seen, failure *v1.VirtualMachineStartFailure) Plan {
	orphan := slices.Contains(s.VM.Finalizers, metav1.FinalizerOrphanDependents)
	p := Plan{Status: status(now, s, failure)}
	switch {
	case s.VMI != nil && !orphan && s.VMI.DeletionTimestamp == nil:
		p.Actions = []Action{StopVMI{s.VMI, "the VM is being deleted"}}
	case s.VMI != nil && !orphan:
	case slices.Contains(s.VM.Finalizers, v1.VirtualMachineControllerFinalizer):
		p = Plan{Actions: []Action{ReleaseVM{s.VM}}, Status: said(s.VM)}
	}
	return p
}

// superseded tells whether a VMI whose guest has never run is no longer what the VM asks for: it may be one that can't
// run, and there is no guest to lose.
func superseded(s Seen) bool {
	switch s.VMI.Status.Phase {
	case v1.VmPhaseUnset, v1.Pending, v1.Scheduling:
		return len(outdated(s)) > 0
	case v1.Scheduled: // its launcher may be starting the guest, unless it has said what it waits for
		c := vmiCondition(s.VMI, v1.VirtualMachineInstanceSynchronized)
		return c != nil && c.Status == k8sv1.ConditionFalse && len(outdated(s)) > 0
	}
	return false
}

// relabel carries changes of the template's labels and annotations to the VMI: they need no restart.
func relabel(s Seen) []Action {
	want, _ := machine(s)
	if want == nil {
		return nil
	}
	if made, ok := s.VMI.Annotations[names.Defaults]; ok { // a record is no one's to change
		want.Annotations[names.Defaults] = made
	} else {
		delete(want.Annotations, names.Defaults)
	}
	a := RelabelVMI{s.VMI, mirror.Diff(s.VMI.Labels, want.Labels, s.Labels), mirror.Diff(s.VMI.Annotations, want.Annotations, s.Annotations)}
	if len(a.Labels)+len(a.Annotations) == 0 {
		return nil
	}
	return []Action{a}
}

// outdated returns the fields of the VM's spec in which the VMI isn't what the VM asks for, and that take a restart.
func outdated(s Seen) []string {
	if s.VMI.Annotations[v1.VirtualMachineGenerationAnnotation] == strconv.FormatInt(s.VM.Generation, 10) {
		return nil
	}
	want, _ := machine(s)
	if want == nil {
		return nil
	}
	return change.Paths(change.Guest(s.VMI, want, change.Own{Labels: s.Labels, Annotations: s.Annotations}), change.Restart)
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
