package plan

import (
	"errors"
	"slices"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/kube/condition"
	"virtstack.io/virtstack/machine/exit"
	"virtstack.io/virtstack/machine/lifecycle"
)

// Reasons of a VMI's condition Synchronized, or of its status.
const (
	ReasonErrImagePull     = "ErrImagePull"
	ReasonImagePullBackOff = "ImagePullBackOff"
	ReasonFailedCreate     = "FailedCreate"
	ReasonFailedState      = "FailedBackendStorageCreate"
	// ReasonUnsupported: the spec asks for what this version doesn't have; the message names the field.
	ReasonUnsupported = "Unsupported"
	// ReasonPodLost: the launcher Pod was taken away; the guest didn't end by itself.
	ReasonPodLost = lifecycle.ReasonPodLost
	// ReasonNodeUnreachable: nobody can tell whether the guest runs.
	ReasonNodeUnreachable = "NodeUnreachable"
	// ReasonLauncherEnded: the launcher ended before it had a guest, or without a node agent to say how.
	ReasonLauncherEnded = "LauncherEnded"
)

// status returns what virt-controller says of a VMI in a phase. The phase itself is in it only while it is ours to
// say, or is being taken back.
func status(now time.Time, s Seen, phase v1.VirtualMachineInstancePhase) v1.VirtualMachineInstanceStatus {
	st := v1.VirtualMachineInstanceStatus{}
	if s.PhaseOurs || phase != s.VMI.Status.Phase {
		st.Phase = phase
		st.PhaseTransitionTimestamps = transitions(now, s.VMI, phase)
		st.Reason = s.VMI.Status.Reason
	}
	if phase != v1.VmPhaseUnset && phase != v1.Pending && phase != v1.Scheduling {
		placed(&st, s)
	}
	want := []condition.Want{ready(s, phase)}
	if s.Pod != nil {
		if c := unschedulable(s.Pod); c != nil {
			want = append(want, condition.False(string(k8sv1.PodScheduled), c.Reason, c.Message))
		}
	}
	if st.Phase == v1.Failed {
		want = append(want, lastWords(s)...)
	}
	st.Conditions = condition.VMI(now, s.VMI.Status.Conditions, want...)
	st.VolumeStatus = volumes(s)
	return st
}

// current is status in the phase that the VMI shows; before the first there is nothing to say.
func current(now time.Time, s Seen) v1.VirtualMachineInstanceStatus {
	if s.VMI.Status.Phase == v1.VmPhaseUnset {
		return carried(s)
	}
	return status(now, s, s.VMI.Status.Phase)
}

// carried returns what virt-controller has said so far: a round that has nothing new says it again.
func carried(s Seen) v1.VirtualMachineInstanceStatus {
	if s.VMI.Status.Phase == v1.VmPhaseUnset {
		return v1.VirtualMachineInstanceStatus{}
	}
	st := v1.VirtualMachineInstanceStatus{VolumeStatus: volumes(s)}
	live := s.VMI.DeepCopy().Status
	if s.PhaseOurs {
		st.Phase, st.PhaseTransitionTimestamps, st.Reason = live.Phase, live.PhaseTransitionTimestamps, live.Reason
	}
	if live.NodeName != "" {
		placed(&st, s)
	}
	for _, c := range live.Conditions {
		ours := c.Type == v1.VirtualMachineInstanceReady || string(c.Type) == string(k8sv1.PodScheduled)
		if ours || s.PhaseOurs && c.Type == v1.VirtualMachineInstanceSynchronized {
			st.Conditions = append(st.Conditions, c)
		}
	}
	return st
}

// problem is status with Synchronized=False, which is virt-controller's to say until it has handed over.
func problem(now time.Time, s Seen, phase v1.VirtualMachineInstancePhase, reason, message string) v1.VirtualMachineInstanceStatus {
	st := status(now, s, phase)
	st.Conditions = slices.DeleteFunc(st.Conditions, func(c v1.VirtualMachineInstanceCondition) bool {
		return c.Type == v1.VirtualMachineInstanceSynchronized
	})
	c := condition.VMI(now, s.VMI.Status.Conditions, condition.False(string(v1.VirtualMachineInstanceSynchronized), reason, message))
	st.Conditions = append(st.Conditions, c...)
	return st
}

// StateError is why the claim of a machine's state can't be made.
type StateError struct{ Err error }

func (e StateError) Error() string { return e.Err.Error() }
func (e StateError) Unwrap() error { return e.Err }

// Failed returns the status of a plan whose action failed: while the VMI has no Pod, that is what its owner must know.
func Failed(now time.Time, s Seen, p Plan, err error) v1.VirtualMachineInstanceStatus {
	if err == nil || s.Pod != nil || s.VMI.DeletionTimestamp != nil || HadPod(s.VMI) {
		return p.Status
	}
	reason := ReasonFailedCreate
	if errors.As(err, &StateError{}) {
		reason = ReasonFailedState
	}
	return problem(now, s, v1.Pending, reason, err.Error())
}

// lastWords says why a VMI failed before it was handed over, or after it was taken back: what was said already, else
// what its launcher left.
func lastWords(s Seen) []condition.Want {
	const kind = string(v1.VirtualMachineInstanceSynchronized)
	for _, c := range s.VMI.Status.Conditions {
		if c.Type == v1.VirtualMachineInstanceSynchronized {
			return []condition.Want{{Type: kind, Status: c.Status, Reason: c.Reason, Message: c.Message}}
		}
	}
	if s.Pod == nil {
		return nil
	}
	message := "the launcher ended before it had a guest"
	if c := computeStatus(s.Pod); c != nil && c.State.Terminated != nil {
		if how := exit.Of(c.State.Terminated); how.Message != "" {
			message += ": " + how.Message
		}
	} else if s.Pod.Status.Message != "" {
		message += ": " + s.Pod.Status.Message
	}
	return []condition.Want{condition.False(kind, ReasonLauncherEnded, message)}
}

// placed fills what is known once a launcher has run: where, and with what.
func placed(st *v1.VirtualMachineInstanceStatus, s Seen) {
	live := s.VMI.DeepCopy().Status
	st.NodeName = nodeName(s)
	st.ActivePods, st.QOSClass, st.LauncherContainerImageVersion = live.ActivePods, live.QOSClass, live.LauncherContainerImageVersion
	st.RuntimeUser, st.CurrentCPUTopology, st.Memory = live.RuntimeUser, live.CurrentCPUTopology, live.Memory
	st.VSOCKCID = live.VSOCKCID
	if s.Pod == nil || s.Pod.Spec.NodeName == "" {
		return
	}
	if st.ActivePods == nil {
		st.ActivePods = map[types.UID]string{}
	}
	st.ActivePods[s.Pod.UID] = s.Pod.Spec.NodeName
	if q := s.Pod.Status.QOSClass; q != "" {
		st.QOSClass = &q
	}
	if len(s.Pod.Spec.Containers) > 0 {
		st.LauncherContainerImageVersion = s.Pod.Spec.Containers[0].Image
	}
	st.RuntimeUser = guestv1.User
	if NeedsCID(s.VMI) {
		id := contextID(s.VMI.UID, s.TakenCIDs)
		st.VSOCKCID = &id
	}
	if c := s.VMI.Spec.Domain.CPU; c != nil && st.CurrentCPUTopology == nil && c.Cores > 0 {
		st.CurrentCPUTopology = &v1.CPUTopology{Cores: c.Cores, Sockets: c.Sockets, Threads: c.Threads}
	}
	if m := s.VMI.Spec.Domain.Memory; m != nil && st.Memory == nil && m.Guest != nil {
		guest := m.Guest.DeepCopy()
		st.Memory = &v1.MemoryStatus{GuestAtBoot: &guest, GuestCurrent: &guest, GuestRequested: &guest}
	}
}

// nodeName returns where the VMI is: once said it stays, for only a migration moves it.
func nodeName(s Seen) string {
	if s.VMI.Status.NodeName != "" || s.Pod == nil {
		return s.VMI.Status.NodeName
	}
	return s.Pod.Spec.NodeName
}

func ready(s Seen, phase v1.VirtualMachineInstancePhase) condition.Want {
	const kind = string(v1.VirtualMachineInstanceReady)
	switch {
	case s.Pod == nil:
		return condition.False(kind, v1.PodNotExistsReason, "the launcher Pod doesn't exist")
	case !lifecycle.Final(s.VMI) && Unreachable(s.Node):
		return condition.False(kind, ReasonNodeUnreachable, releasedBy(s.Node.Name))
	case s.Pod.DeletionTimestamp != nil:
		return condition.False(kind, v1.PodTerminatingReason, "the launcher Pod is being deleted")
	case phase != v1.Running:
		return condition.False(kind, v1.GuestNotRunningReason, lifecycle.NotRunning)
	}
	c := podCondition(s.Pod, k8sv1.PodReady)
	if c == nil {
		return condition.False(kind, v1.PodConditionMissingReason, "the launcher Pod has no condition Ready")
	}
	return condition.Want{Type: kind, Status: c.Status, Reason: c.Reason, Message: c.Message}
}

func transitions(now time.Time, vmi *v1.VirtualMachineInstance, phase v1.VirtualMachineInstancePhase) []v1.VirtualMachineInstancePhaseTransitionTimestamp {
	have := vmi.DeepCopy().Status.PhaseTransitionTimestamps
	for _, t := range have {
		if t.Phase == phase {
			return have
		}
	}
	at := metav1.NewTime(now.Truncate(time.Second))
	return append(have, v1.VirtualMachineInstancePhaseTransitionTimestamp{Phase: phase, PhaseTransitionTimestamp: at})
}
