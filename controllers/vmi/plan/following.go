package plan

import (
	"fmt"
	"slices"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/mirror"
	"virtstack.io/virtstack/machine/names"
)

// pullFailures are the reasons for which a container waits because an image of its Pod can't be had. Reasons that a
// client knows are kept, the rest counts as ErrImagePull.
var pullFailures = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable"}

// following reports what becomes of the Pod until its launcher runs, and hands over then. What the node agent doesn't
// wait for, the Pod's gate and the VMI's label, comes in the rounds after.
func following(now time.Time, s Seen) Plan {
	if last := lastState(s.Pod); last != nil && !s.PhaseOurs {
		return unsaid(now, s, last)
	}
	p := Plan{Actions: append(hold(s), relabel(s)...)}
	before := s.VMI.Status.Phase != v1.Scheduled
	waiting, pulling := pullFailure(s.Pod)
	settled := s.Pod.CreationTimestamp.Add(settleAfter)
	switch {
	case s.PhaseOurs && Finished(s.Pod): // no guest can come of it
		p.Status = status(now, s, v1.Failed)
		p.Status.Reason = ReasonLauncherEnded
	case !s.PhaseOurs || !before:
		p.Actions = append(append(p.Actions, gate(now, s)...), label(s)...)
		p.Status = status(now, s, s.VMI.Status.Phase)
	case running(s.Pod) && s.Pod.DeletionTimestamp == nil:
		p.Status = status(now, s, v1.Scheduled)
	case pulling:
		p.Status = problem(now, s, v1.Scheduling, waiting.Reason, waiting.Message)
	case unschedulable(s.Pod) == nil && s.VMI.Status.Phase == v1.VmPhaseUnset && now.Before(settled):
		p.Status, p.Recheck = carried(s), settled
	default:
		p.Status = status(now, s, v1.Scheduling)
	}
	return p
}

// relabel carries changes of the VMI's labels and annotations to its Pod, where Services and network policies see them.
func relabel(s Seen) []Action {
	a := RelabelPod{s.Pod, mirror.Diff(s.Pod.Labels, s.Labels, s.OurLabels), mirror.Diff(s.Pod.Annotations, s.Annotations, s.OurAnnotations)}
	if s.Pod.DeletionTimestamp != nil || len(a.Labels)+len(a.Annotations) == 0 {
		return nil
	}
	return []Action{a}
}

// gate keeps the condition of the Pod's readiness gate right from the moment its launcher runs.
func gate(now time.Time, s Seen) []Action {
	if !running(s.Pod) || s.Pod.DeletionTimestamp != nil {
		return nil
	}
	paused, want := isTrue(s.VMI, v1.VirtualMachineInstancePaused), k8sv1.ConditionTrue
	if paused {
		want = k8sv1.ConditionFalse
	}
	if c := podCondition(s.Pod, k8sv1.PodConditionType(names.UnpausedGate)); c != nil && c.Status == want {
		return nil
	}
	return []Action{OpenGate{s.Pod, paused, now}}
}

func label(s Seen) []Action {
	if node := nodeName(s); node != "" && s.VMI.Labels[v1.NodeNameLabel] != node {
		return []Action{LabelNode{s.VMI, node}}
	}
	return nil
}

// running tells whether the launcher runs on a node.
func running(pod *k8sv1.Pod) bool {
	c := computeStatus(pod)
	return pod.Spec.NodeName != "" && c != nil && c.State.Running != nil
}

func computeStatus(pod *k8sv1.Pod) *k8sv1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if c := &pod.Status.ContainerStatuses[i]; c.Name == guestv1.ComputeContainer {
			return c
		}
	}
	return nil
}

// pullFailure returns why an image of the Pod, a disk's or the launcher's, can't be had.
func pullFailure(pod *k8sv1.Pod) (k8sv1.ContainerStateWaiting, bool) {
	c := computeStatus(pod)
	if c == nil || c.State.Waiting == nil || !slices.Contains(pullFailures, c.State.Waiting.Reason) {
		return k8sv1.ContainerStateWaiting{}, false
	}
	w := *c.State.Waiting
	if w.Reason != ReasonImagePullBackOff && w.Reason != ReasonErrImagePull {
		w.Message = fmt.Sprintf("%s: %s", w.Reason, w.Message)
		w.Reason = ReasonErrImagePull
	}
	return w, true
}

func unschedulable(pod *k8sv1.Pod) *k8sv1.PodCondition {
	c := podCondition(pod, k8sv1.PodScheduled)
	if c == nil || c.Status != k8sv1.ConditionFalse || c.Reason != k8sv1.PodReasonUnschedulable {
		return nil
	}
	return c
}

func podCondition(pod *k8sv1.Pod, kind k8sv1.PodConditionType) *k8sv1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			return c
		}
	}
	return nil
}

func isTrue(vmi *v1.VirtualMachineInstance, kind v1.VirtualMachineInstanceConditionType) bool {
	for _, c := range vmi.Status.Conditions {
		if c.Type == kind {
			return c.Status == k8sv1.ConditionTrue
		}
	}
	return false
}
