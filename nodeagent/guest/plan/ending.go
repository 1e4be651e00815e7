package plan

import (
	"slices"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/exit"
	"virtstack.io/virtstack/machine/lifecycle"
)

// end is how a guest ended. Reason is one CamelCase word, empty for an end that was wished for.
type end struct {
	phase           v1.VirtualMachineInstancePhase
	reason, message string
}

// ending tells whether the guest has ended, and how: by the launcher's word, else by how its container ended. A
// container that ended takes its guest with it.
func ending(s Seen) (end, bool) {
	if s.Guest.GetPhase() == guestv1.State_PHASE_STOPPED {
		return stopped(s), true
	}
	if s.Pod == nil {
		return end{}, false
	}
	i := slices.IndexFunc(s.Pod.Status.ContainerStatuses, func(c k8sv1.ContainerStatus) bool { return c.Name == guestv1.ComputeContainer })
	if i < 0 || s.Pod.Status.ContainerStatuses[i].State.Terminated == nil {
		return end{}, false
	}
	last := s.Pod.Status.ContainerStatuses[i].State.Terminated
	if last.ExitCode == 0 && lifecycle.PodTaken(s.VMI, s.Pod) {
		return podLost, true
	}
	return exited(last), true
}

// podLost is the end of a guest that was shut down because its Pod was taken away.
var podLost = end{v1.Failed, lifecycle.ReasonPodLost, "the launcher Pod was taken away, and the guest was shut down for it; it didn't end by itself"}

func stopped(s Seen) end {
	message := text(s.Guest.GetMessage())
	reason, wanted := s.Guest.GetStopReason(), s.VMI.DeletionTimestamp == nil
	ended := reason == guestv1.State_STOP_REASON_SHUTDOWN || reason == guestv1.State_STOP_REASON_DESTROYED
	if ended && wanted && (s.Guest.GetToldToEnd() || lifecycle.PodTaken(s.VMI, s.Pod)) {
		return podLost
	}
	switch reason {
	case guestv1.State_STOP_REASON_SHUTDOWN:
		return end{v1.Succeeded, "", message}
	case guestv1.State_STOP_REASON_DESTROYED:
		if !wanted {
			return end{v1.Succeeded, "", message}
		}
		return end{v1.Failed, "GuestDestroyed", orElse(message, "the guest was ended from outside")}
	case guestv1.State_STOP_REASON_CRASHED:
		return end{v1.Failed, "GuestCrashed", orElse(message, "the guest crashed")}
	}
	return end{v1.Failed, "GuestFailed", orElse(message, "QEMU could not be started, or died")}
}

func exited(t *k8sv1.ContainerStateTerminated) end {
	how := exit.Of(t)
	if t.ExitCode == exit.Done {
		return end{v1.Succeeded, "", text(how.Message)}
	}
	return end{v1.Failed, how.Reason, text(how.Message)}
}

func finish(now time.Time, s Seen, e end) Plan {
	failure := ""
	event := Event{k8sv1.EventTypeNormal, "Stopped", orElse(e.message, "The guest has shut down.")}
	if e.phase == v1.Failed {
		failure = e.message
		event.Type = k8sv1.EventTypeWarning
	}
	p := Plan{Status: status(now, s, e.phase, failure), Take: s.VMI.Status.Phase == v1.Scheduled, Events: []Event{event}}
	p.Status.Reason = e.reason
	return p
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
