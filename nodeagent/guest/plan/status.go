package plan

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/kube/condition"
)

// Texts of conditions; the first is one that clients of the contract look for.
const (
	syncFailed    = "Synchronizing with the Domain failed."
	notMigratable = "This version cannot migrate guests."
)

// maxText is how many bytes of a launcher's text reach the status.
const maxText = 1024

// device is what a disk or machine may be called; a launcher's word for it is not taken unseen.
var device = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// status returns every field of the status that the node agent owns. failure is what goes wrong, "" for nothing.
func status(now time.Time, s Seen, phase v1.VirtualMachineInstancePhase, failure string) *v1.VirtualMachineInstanceStatus {
	st := &v1.VirtualMachineInstanceStatus{Phase: phase, PhaseTransitionTimestamps: transitions(now, s.VMI, phase)}
	if s.Guest.GetPhase() > guestv1.State_PHASE_NOT_STARTED {
		st.Interfaces, st.Machine, st.VolumeStatus = withAgent(s, interfaces(s)), machine(s), targets(s)
		st.GuestOSInfo = system(s.Guest.GetAgent())
	} else {
		keep(st, s.VMI)
	}
	st.VolumeStatus = withDump(st.VolumeStatus, s)
	var conditions []condition.Want
	if phase != v1.Scheduled {
		conditions = append(conditions, condition.False(string(v1.VirtualMachineInstanceIsMigratable), v1.VirtualMachineInstanceReasonNotMigratable, notMigratable))
	}
	if s.Guest.GetPhase() == guestv1.State_PHASE_PAUSED {
		conditions = append(conditions, condition.True(string(v1.VirtualMachineInstancePaused), "PausedByUser", orElse(text(s.Guest.GetMessage()), "VMI was paused by user")))
	}
	if s.Guest.GetAgent() != nil {
		conditions = append(conditions, condition.True(string(v1.VirtualMachineInstanceAgentConnected), "", ""))
	}
	conditions = append(conditions, credentials(s)...)
	if failure != "" {
		conditions = append(conditions, condition.False(string(v1.VirtualMachineInstanceSynchronized), syncFailed, text(failure)))
	}
	st.Conditions = condition.VMI(now, s.VMI.Status.Conditions, conditions...)
	return st
}

// keep says again what was said of a guest that tells nothing now.
func keep(st *v1.VirtualMachineInstanceStatus, vmi *v1.VirtualMachineInstance) {
	said := vmi.DeepCopy().Status
	st.Interfaces, st.Machine, st.GuestOSInfo = said.Interfaces, said.Machine, said.GuestOSInfo
	for _, v := range said.VolumeStatus {
		if v.Target != "" {
			st.VolumeStatus = append(st.VolumeStatus, v1.VolumeStatus{Name: v.Name, Target: v.Target})
		}
	}
}

func transitions(now time.Time, vmi *v1.VirtualMachineInstance, phase v1.VirtualMachineInstancePhase) []v1.VirtualMachineInstancePhaseTransitionTimestamp {
	have := vmi.DeepCopy().Status.PhaseTransitionTimestamps
	for _, t := range have {
		if t.Phase == phase {
			return have
		}
	}
	return append(have, v1.VirtualMachineInstancePhaseTransitionTimestamp{Phase: phase, PhaseTransitionTimestamp: metav1.NewTime(now.Truncate(time.Second))})
}

func machine(s Seen) *v1.Machine {
	if m := s.Guest.GetMachine(); device.MatchString(m) {
		return &v1.Machine{Type: m}
	}
	return nil
}

// targets tells the device of each volume in the guest, in the order of the VMI's volumes.
func targets(s Seen) []v1.VolumeStatus {
	said := map[string]string{}
	for _, d := range s.Guest.GetDisks() {
		if device.MatchString(d.GetTarget()) {
			said[d.GetName()] = d.GetTarget()
		}
	}
	var found []v1.VolumeStatus
	for _, v := range s.VMI.Spec.Volumes {
		if t := said[v.Name]; t != "" {
			found = append(found, v1.VolumeStatus{Name: v.Name, Target: t})
		}
	}
	return found
}

// text makes a launcher's words fit for a status: whole characters that can be shown, and not too many.
func text(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return ' '
		}
		return r
	}, s[:min(len(s), maxText)]))
}
