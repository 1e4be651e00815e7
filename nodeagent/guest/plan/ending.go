package plan

import (
	"slices"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// end is how a guest ended. Reason is one CamelCase word, empty for an end that was wished for.
type end struct {
	phase           v1.VirtualMachineInstancePhase
	reason, message string
}

// The launcher's exit codes beside 0, a guest that shut down or was ended on request, and 1, one that failed.
const exitLibvirt = 3

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
	return exited(s.Pod.Status.ContainerStatuses[i].State.Terminated), true
}

func stopped(s Seen) end {
	message := text(s.Guest.GetMessage())
	switch s.Guest.GetStopReason() {
	case guestv1.State_STOP_REASON_SHUTDOWN:
		return end{v1.Succeeded, "", message}
	case guestv1.State_STOP_REASON_DESTROYED:
		if s.VMI.DeletionTimestamp != nil {
			return end{v1.Succeeded, "", message}
		}
		return end{v1.Failed, "GuestDestroyed", orElse(message, "the guest was ended from outside")}
	case guestv1.State_STOP_REASON_CRASHED:
		return end{v1.Failed, "GuestCrashed", orElse(message, "the guest crashed")}
	}
	return end{v1.Failed, "GuestFailed", orElse(message, "QEMU could not be started, or died")}
}

func exited(t *k8sv1.ContainerStateTerminated) end {
	message := text(t.Message)
	switch {
	case t.ExitCode == 0:
		return end{v1.Succeeded, "", message}
	case t.Reason == "OOMKilled":
		return end{v1.Failed, "OOMKilled", orElse(message, "the launcher Pod needed more memory than its limit")}
	case t.ExitCode == exitLibvirt:
		return end{v1.Failed, "LibvirtFailed", orElse(message, "libvirt died")}
	}
	return end{v1.Failed, "LauncherFailed", orElse(message, "the launcher ended without giving a reason")}
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
