// Package plan decides what a node agent does for one VMI and what it writes to the VMI's status. It is pure.
package plan

import (
	"fmt"
	"slices"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/defaults"
)

// Times of a VMI that ends or doesn't answer.
const (
	// PressEvery is how often a guest is asked to shut down: it may not listen yet.
	PressEvery = 5 * time.Second
	// Patience is how long a launcher may be silent before the VMI's status says so.
	Patience = 30 * time.Second
)

// Seen are one round's facts.
type Seen struct {
	// Node is this node's name.
	Node string
	VMI  *v1.VirtualMachineInstance
	// Pod is the launcher's on this node, one of the VMI's active Pods and controlled by it; nil: none is seen, which
	// says nothing about the guest.
	Pod *k8sv1.Pod
	// Guest is what the launcher last said; nil before it said anything. It is not trusted with the size or the
	// content of anything.
	Guest *guestv1.State
	// Advertised is set while the node agent tells the guest of its IPv6 router.
	Advertised bool
	// Behind is set where a virtual CPU that is to run before all else doesn't.
	Behind bool
	// Silent is since when the launcher has not been heard of; zero while it is connected. Loss says why.
	Silent time.Time
	Loss   string
}

// Plan is what to do.
type Plan struct {
	// Actions in order; the first that fails ends the list.
	Actions []Action
	// Status are the fields that the node agent owns; nil: leave them as they are.
	Status *v1.VirtualMachineInstanceStatus
	// Take is set where the phase is still virt-controller's and is to be taken over (writers.md).
	Take bool
	// Events are to be told once Status is written.
	Events []Event
	// Recheck is when to look again even if nothing changes; zero: never.
	Recheck time.Time
}

// Action is one thing to do to a guest.
type Action interface{ String() string }

// Start prepares the Pod's network and has the launcher start the guest.
type Start struct{ Pod *k8sv1.Pod }

// Advertise tells the guest of its IPv6 router, for as long as its Pod runs it.
type Advertise struct{ Pod *k8sv1.Pod }

// Prefer puts the guest's realtime virtual CPUs before all else that wants to run where they do.
type Prefer struct{ Pod *k8sv1.Pod }

// Press presses the guest's power button; it may be deaf, or just have ended, so that it fails is no failure.
type Press struct{ Pod *k8sv1.Pod }

// Kill ends the guest at once.
type Kill struct {
	Pod *k8sv1.Pod
	Why string
}

func (a Start) String() string { return "starting the guest in Pod " + a.Pod.Name }
func (a Advertise) String() string {
	return "advertising the guest's IPv6 router in Pod " + a.Pod.Name
}
func (a Prefer) String() string {
	return "putting the guest's virtual CPUs first in Pod " + a.Pod.Name
}
func (a Press) String() string { return "asking the guest to shut down" }
func (a Kill) String() string  { return "ending the guest: " + a.Why }

// Event is one that people read; Type is Kubernetes' Normal or Warning.
type Event struct{ Type, Reason, Message string }

// Ours tells whether a VMI is this node's to act on: it is handed over and has not reached an end.
func Ours(node string, vmi *v1.VirtualMachineInstance) bool {
	return vmi.Status.NodeName == node && (vmi.Status.Phase == v1.Scheduled || vmi.Status.Phase == v1.Running)
}

// LauncherOf returns the Pod whose launcher runs the VMI on this node: active by the VMI's status, on the node, and
// controlled by that very VMI. Labels don't count: anybody may set them.
func LauncherOf(node string, vmi *v1.VirtualMachineInstance, pods []k8sv1.Pod) *k8sv1.Pod {
	for i := range pods {
		p := &pods[i]
		owner := metav1.GetControllerOf(p)
		if vmi.Status.ActivePods[p.UID] == node && p.Spec.NodeName == node && !p.Spec.HostNetwork && owner != nil && owner.UID == vmi.UID {
			return p
		}
	}
	return nil
}

// For returns the plan for a VMI that is Ours.
func For(now time.Time, s Seen) Plan {
	end, ended := ending(s)
	switch {
	case s.Pod == nil: // virt-controller looks for it, by a live read
		return Plan{}
	case ended:
		return finish(now, s, end)
	case !s.Silent.IsZero():
		return silent(now, s)
	}
	switch s.Guest.GetPhase() {
	case guestv1.State_PHASE_NOT_STARTED:
		return notStarted(now, s)
	case guestv1.State_PHASE_RUNNING, guestv1.State_PHASE_PAUSED, guestv1.State_PHASE_SHUTTING_DOWN:
		return running(now, s)
	}
	return Plan{}
}

func notStarted(now time.Time, s Seen) Plan {
	switch {
	case s.VMI.DeletionTimestamp != nil: // its Pod is deleted, and the launcher ends
		return Plan{}
	case s.VMI.Status.Phase == v1.Running:
		return Plan{Status: status(now, s, v1.Running, "the launcher has no guest any more"), Recheck: now.Add(Patience)}
	}
	return Plan{Actions: []Action{Start{s.Pod}}}
}

func running(now time.Time, s Seen) Plan {
	p := Plan{Status: status(now, s, v1.Running, ""), Take: s.VMI.Status.Phase == v1.Scheduled}
	if p.Take {
		p.Events = []Event{
			{k8sv1.EventTypeNormal, "Created", "The guest's domain is defined."},
			{k8sv1.EventTypeNormal, "Started", "The guest runs."},
		}
	}
	p.Events = append(p.Events, tellCredentials(s.VMI.Status.Conditions, p.Status.Conditions)...)
	p.Events = append(p.Events, tellDump(s.VMI, p.Status.VolumeStatus)...)
	if s.VMI.DeletionTimestamp == nil {
		if !s.Advertised && hasRouter(s) {
			p.Actions = []Action{Advertise{s.Pod}}
		}
		if s.Behind {
			p.Actions = append(p.Actions, Prefer{s.Pod})
		}
		p.Actions = append(p.Actions, dumping(s)...)
		return p
	}
	grace := defaults.GracePeriod(s.VMI)
	deadline := s.VMI.DeletionTimestamp.Add(time.Duration(grace) * time.Second)
	if !now.Before(deadline) {
		p.Actions = []Action{Kill{s.Pod, fmt.Sprintf("terminationGracePeriodSeconds of %d are over", grace)}}
		p.Recheck = now.Add(PressEvery)
		return p
	}
	// A launcher whose Pod is deleted goes on asking by itself, at a pace that guests can bear. A paused guest hears nothing.
	asked, paused := s.Guest.GetPhase() == guestv1.State_PHASE_SHUTTING_DOWN, s.Guest.GetPhase() == guestv1.State_PHASE_PAUSED
	if !paused && (!asked || s.Pod.DeletionTimestamp == nil) {
		p.Actions = []Action{Press{s.Pod}}
	}
	p.Recheck = now.Add(PressEvery)
	if deadline.Before(p.Recheck) {
		p.Recheck = deadline
	}
	return p
}

// silent waits for a launcher that is not connected: it may be starting, ending, or stuck.
func silent(now time.Time, s Seen) Plan {
	if overdue := s.Silent.Add(Patience); now.Before(overdue) {
		return Plan{Recheck: overdue}
	}
	phase := s.VMI.Status.Phase
	return Plan{Status: status(now, s, phase, "no answer from the launcher: "+s.Loss), Take: phase == v1.Scheduled}
}

// Failed returns p as it is after an action failed: the status says so, and no event of a success is told.
func Failed(now time.Time, s Seen, p Plan, err error) Plan {
	p.Status = status(now, s, s.VMI.Status.Phase, err.Error())
	p.Take = s.VMI.Status.Phase == v1.Scheduled
	p.Events = []Event{{k8sv1.EventTypeWarning, "SyncFailed", text(err.Error())}}
	if c := failure(s.VMI); c != nil && c.Message == text(err.Error()) {
		p.Events = nil
	}
	return p
}

// failure returns the VMI's condition that something failed, nil for none.
func failure(vmi *v1.VirtualMachineInstance) *v1.VirtualMachineInstanceCondition {
	i := slices.IndexFunc(vmi.Status.Conditions, func(c v1.VirtualMachineInstanceCondition) bool {
		return c.Type == v1.VirtualMachineInstanceSynchronized && c.Status == k8sv1.ConditionFalse
	})
	if i < 0 {
		return nil
	}
	return &vmi.Status.Conditions[i]
}
