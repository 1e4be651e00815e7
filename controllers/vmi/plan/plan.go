// Package plan decides what is done for one VMI until its node's agent takes over, and after it is gone. It is pure.
package plan

import (
	"time"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/mirror"
)

// Seen is one round's facts.
type Seen struct {
	VMI *v1.VirtualMachineInstance
	// Pod is the VMI's launcher Pod by name and owner; nil: the cache shows none.
	Pod *k8sv1.Pod
	// PodGone says that the API server itself, not a cache, has no such Pod.
	PodGone bool
	// Node is where the VMI is; nil: nowhere yet, or the Node object is gone.
	Node *k8sv1.Node
	// PhaseOurs says that virt-controller owns status.phase, or nobody does: the node agent hasn't taken over.
	PhaseOurs bool
	// Claims are the claims that the VMI's volumes read, by name; one that isn't there is nil.
	Claims map[string]*k8sv1.PersistentVolumeClaim
	// Held names, for each claim that another VMI's launcher may write to and this one mustn't meanwhile, that VMI.
	Held map[string]string
	// TakenCIDs are the context ids of other guests' sockets on the node of a VMI that has yet to get one.
	TakenCIDs map[uint32]bool
	// Imports are the phases of the DataVolumes that make these claims, by claim; none for a claim that no DataVolume makes.
	Imports map[string]string
	// State is the claim on which the VMI's machine keeps its state, as it has to be made; nil: it is there, or the
	// machine keeps nothing.
	State *k8sv1.PersistentVolumeClaim
	// Rendered is the Pod that the VMI asks for; Unrendered says why there can be none.
	Rendered   *k8sv1.Pod
	Unrendered error
	// Labels and Annotations are what the Pod should carry, OurLabels and OurAnnotations the keys that this controller
	// has set on it.
	Labels, Annotations       map[string]string
	OurLabels, OurAnnotations []string
}

// Plan is what one round does.
type Plan struct {
	Actions []Action // in order; the first that fails ends the list
	// Reports are made once the status is written: a round that is repeated makes none twice.
	Reports []Report
	// Status holds what virt-controller owns of the VMI's status, and nothing else.
	Status v1.VirtualMachineInstanceStatus
	// TakeBack says that the phase in Status is taken from the node agent.
	TakeBack bool
	Recheck  time.Time // zero: nothing to wait for but change
}

// Action is one thing done to the cluster. Its String is a gerund.
type Action interface{ String() string }

// HoldVMI puts the finalizer on a VMI that was made without one.
type HoldVMI struct{ VMI *v1.VirtualMachineInstance }

// CreateClaim creates the claim on which a VMI's machine keeps its state.
type CreateClaim struct {
	VMI   *v1.VirtualMachineInstance
	Claim *k8sv1.PersistentVolumeClaim
}

// CreatePod creates the launcher Pod.
type CreatePod struct {
	VMI *v1.VirtualMachineInstance
	Pod *k8sv1.Pod
}

// DeletePod deletes the launcher Pod that was seen.
type DeletePod struct {
	VMI *v1.VirtualMachineInstance
	Pod *k8sv1.Pod
	Why string
}

// OpenGate sets the condition of the Pod's readiness gate.
type OpenGate struct {
	Pod    *k8sv1.Pod
	Paused bool
	At     time.Time
}

// LabelNode says on the VMI where it runs.
type LabelNode struct {
	VMI  *v1.VirtualMachineInstance
	Node string
}

// RelabelPod brings the Pod's labels and annotations to the VMI's.
type RelabelPod struct {
	Pod                 *k8sv1.Pod
	Labels, Annotations mirror.Change
}

// Report is a warning to the VMI's owner.
type Report struct{ Reason, Message string }

// ReleaseVMI takes the finalizers away that keep a deleted VMI.
type ReleaseVMI struct{ VMI *v1.VirtualMachineInstance }

func (a HoldVMI) String() string { return "holding VMI " + a.VMI.Name }
func (a CreateClaim) String() string {
	return "creating PersistentVolumeClaim " + a.Claim.Name
}
func (a CreatePod) String() string { return "creating Pod " + a.Pod.Name }
func (a DeletePod) String() string { return "deleting Pod " + a.Pod.Name + ": " + a.Why }
func (a OpenGate) String() string {
	if a.Paused {
		return "closing the gate of Pod " + a.Pod.Name
	}
	return "opening the gate of Pod " + a.Pod.Name
}
func (a LabelNode) String() string  { return "labelling VMI " + a.VMI.Name + " with node " + a.Node }
func (a RelabelPod) String() string { return "labelling Pod " + a.Pod.Name + " as its VMI" }
func (a ReleaseVMI) String() string { return "releasing VMI " + a.VMI.Name }

// Waits, each of which ends in what it says.
const (
	// settleAfter is how long a Pod may take to run before the VMI's status says that it is on its way: mostly it runs
	// by then, and one write is saved.
	settleAfter = 3 * time.Second
	// importEvery is how often a DataVolume is asked for: it isn't watched, for a cluster may not know the kind.
	importEvery = 5 * time.Second
	// lingerAfter is how long a launcher may take to end by itself once its guest has.
	lingerAfter = 10 * time.Second
	// agentAfter is how long a node agent may take to say how a guest ended whose launcher has.
	agentAfter = time.Minute
)

// For plans one round.
func For(now time.Time, s Seen) Plan {
	switch {
	case s.VMI.DeletionTimestamp != nil:
		return ending(now, s)
	case lifecycle.Final(s.VMI):
		return ended(now, s)
	case s.Pod != nil:
		return following(now, s)
	case !HadPod(s.VMI):
		return starting(now, s)
	case s.PodGone:
		return podLost(now, s)
	}
	return Plan{Status: carried(s)} // a cache says that the Pod is gone, which is not enough
}

// HadPod tells whether a VMI has had its launcher Pod: a phase from Scheduling on was written when there was one.
// What follows from such a Pod's absence needs the API server's own word. Before, the Pod can be made again: under its
// derived name there is only ever one.
func HadPod(vmi *v1.VirtualMachineInstance) bool {
	return vmi.Status.Phase != v1.VmPhaseUnset && vmi.Status.Phase != v1.Pending
}

// starting makes the Pod.
func starting(now time.Time, s Seen) Plan {
	if s.Unrendered != nil {
		return Plan{Actions: hold(s), Status: problem(now, s, v1.Pending, ReasonUnsupported, s.Unrendered.Error())}
	}
	if reason, message := claimProblem(s); reason != "" {
		return Plan{Actions: hold(s), Status: problem(now, s, v1.Pending, reason, message)}
	}
	if reason, message := importProblem(s); reason != "" {
		return Plan{Actions: hold(s), Status: problem(now, s, v1.Pending, reason, message), Recheck: now.Add(importEvery)}
	}
	actions := hold(s)
	if s.State != nil {
		actions = append(actions, CreateClaim{s.VMI, s.State})
	}
	return Plan{Actions: append(actions, CreatePod{s.VMI, s.Rendered}), Status: carried(s)}
}

// hold returns the action that a VMI made by a person needs first.
func hold(s Seen) []Action {
	if held(s.VMI) {
		return nil
	}
	return []Action{HoldVMI{s.VMI}}
}

func held(vmi *v1.VirtualMachineInstance) bool {
	for _, f := range vmi.Finalizers {
		if f == v1.VirtualMachineInstanceFinalizer {
			return true
		}
	}
	return false
}

// podLost ends a VMI whose Pod was taken away: nothing runs any more, and only virt-controller is left to say so.
func podLost(now time.Time, s Seen) Plan {
	return over(now, s, v1.Failed, Report{ReasonPodLost, "the launcher Pod was taken away; the guest didn't end by itself"})
}

// over ends a VMI in a final phase that nobody else is there to say.
func over(now time.Time, s Seen, phase v1.VirtualMachineInstancePhase, why Report) Plan {
	p := Plan{Reports: []Report{why}, Status: problem(now, s, phase, why.Reason, why.Message), TakeBack: !s.PhaseOurs}
	p.Status.Reason = why.Reason
	return p
}

// ended looks after the Pod of a VMI whose run is over: its launcher ends by itself, or is ended.
func ended(now time.Time, s Seen) Plan {
	p := Plan{Status: current(now, s)}
	if s.Pod == nil || s.Pod.DeletionTimestamp != nil || Finished(s.Pod) {
		return p
	}
	at := since(s.VMI).Add(lingerAfter)
	if now.Before(at) {
		p.Recheck = at
		return p
	}
	p.Actions = []Action{DeletePod{s.VMI, s.Pod, "its guest has ended"}}
	return p
}

// ending takes a deleted VMI down: first its Pod, in which the launcher shuts the guest down, then the VMI.
func ending(now time.Time, s Seen) Plan {
	switch {
	case s.Pod != nil && s.Pod.DeletionTimestamp == nil:
		return Plan{Actions: []Action{DeletePod{s.VMI, s.Pod, "VMI " + s.VMI.Name + " is being deleted"}}, Status: current(now, s)}
	case s.Pod != nil || !s.PodGone:
		return Plan{Status: current(now, s)}
	case s.PhaseOurs || lifecycle.Final(s.VMI):
		return Plan{Actions: release(s.VMI), Status: carried(s)}
	}
	// Handed over, and the node agent hasn't said how it ended: it is recorded before the VMI is released.
	return podLost(now, s)
}

func release(vmi *v1.VirtualMachineInstance) []Action {
	for _, f := range vmi.Finalizers {
		if f == v1.VirtualMachineInstanceFinalizer || f == v1.VirtualMachineControllerFinalizer {
			return []Action{ReleaseVMI{vmi}}
		}
	}
	return nil
}

// Finished tells whether no container of the Pod runs any more or will.
func Finished(pod *k8sv1.Pod) bool {
	return pod.Status.Phase == k8sv1.PodSucceeded || pod.Status.Phase == k8sv1.PodFailed
}

// since returns when the VMI entered its phase, or when it was made.
func since(vmi *v1.VirtualMachineInstance) time.Time {
	for _, t := range vmi.Status.PhaseTransitionTimestamps {
		if t.Phase == vmi.Status.Phase {
			return t.PhaseTransitionTimestamp.Time
		}
	}
	return vmi.CreationTimestamp.Time
}

// Owns tells whether the Pod is the VMI's: by UID, whatever its labels say.
func Owns(uid types.UID, pod *k8sv1.Pod) bool {
	for _, r := range pod.OwnerReferences {
		if r.Controller != nil && *r.Controller && r.UID == uid {
			return true
		}
	}
	return false
}
