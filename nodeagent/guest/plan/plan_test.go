package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

const (
	here   = "node-a"
	vmiUID = types.UID("vmi-uid")
	podUID = types.UID("pod-uid")
)

func vmi(phase v1.VirtualMachineInstancePhase, changes ...func(*v1.VirtualMachineInstance)) *v1.VirtualMachineInstance {
	m := &v1.VirtualMachineInstance{}
	m.Namespace, m.Name, m.UID = "ns", "web", vmiUID
	m.Spec.TerminationGracePeriodSeconds = new(int64(30))
	m.Spec.Domain.Devices.Interfaces = []v1.Interface{{Name: "default", MacAddress: "02-AB-00-00-00-01"}}
	m.Spec.Volumes = []v1.Volume{{Name: "root"}, {Name: "seed"}}
	m.Status.Phase, m.Status.NodeName = phase, here
	m.Status.ActivePods = map[types.UID]string{podUID: here}
	for _, change := range changes {
		change(m)
	}
	return m
}

func deletedFor(d time.Duration) func(*v1.VirtualMachineInstance) {
	return func(m *v1.VirtualMachineInstance) { m.DeletionTimestamp = &metav1.Time{Time: now.Add(-d)} }
}

func pod() *k8sv1.Pod {
	p := &k8sv1.Pod{}
	p.Namespace, p.Name, p.UID = "ns", "virt-launcher-web-abc", podUID
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "VirtualMachineInstance", Name: "web", UID: vmiUID, Controller: new(true)}}
	p.Spec.NodeName = here
	p.Status.PodIPs = []k8sv1.PodIP{{IP: "10.88.0.7"}, {IP: "fd00::7"}}
	return p
}

func deletedPod() *k8sv1.Pod {
	p := pod()
	p.DeletionTimestamp = &metav1.Time{Time: now}
	return p
}

func exitedPod(code int32, reason, message string) *k8sv1.Pod {
	p := pod()
	p.Status.ContainerStatuses = []k8sv1.ContainerStatus{{Name: "compute", State: k8sv1.ContainerState{
		Terminated: &k8sv1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message},
	}}}
	return p
}

func guest(phase guestv1.State_Phase) *guestv1.State {
	return &guestv1.State{Phase: phase, Machine: "pc-q35-10.0", Disks: []*guestv1.Disk{{Name: "root", Target: "vda"}}}
}

func stoppedGuest(reason guestv1.State_StopReason) *guestv1.State {
	s := guest(guestv1.State_PHASE_STOPPED)
	s.StopReason = reason
	return s
}

// summary is a plan in a line.
func summary(p Plan) string {
	var parts []string
	for _, a := range p.Actions {
		parts = append(parts, a.String())
	}
	if p.Status != nil {
		line := "phase " + string(p.Status.Phase)
		if p.Take {
			line += " taken"
		}
		if p.Status.Reason != "" {
			line += " " + p.Status.Reason
		}
		for _, c := range p.Status.Conditions {
			if c.Type == v1.VirtualMachineInstanceSynchronized || c.Type == v1.VirtualMachineInstancePaused {
				line += fmt.Sprintf(", %s=%s %s", c.Type, c.Status, c.Message)
			}
		}
		parts = append(parts, line)
	}
	for _, e := range p.Events {
		parts = append(parts, e.Type+" "+e.Reason)
	}
	if !p.Recheck.IsZero() {
		parts = append(parts, "again in "+p.Recheck.Sub(now).String())
	}
	return strings.Join(parts, "; ")
}

func TestPlans(t *testing.T) {
	const start = "starting the guest in Pod virt-launcher-web-abc"
	gone := now.Add(-time.Minute)
	for name, tc := range map[string]struct {
		seen Seen
		want string
	}{
		"nothing heard yet": {Seen{VMI: vmi(v1.Scheduled), Pod: pod(), Silent: now}, "again in 30s"},
		"never heard of": {Seen{VMI: vmi(v1.Scheduled), Pod: pod(), Silent: gone, Loss: "refused"},
			"phase Scheduled taken, Synchronized=False no answer from the launcher: refused"},
		"launcher waits":            {Seen{VMI: vmi(v1.Scheduled), Pod: pod(), Guest: guest(guestv1.State_PHASE_NOT_STARTED)}, start},
		"deleted before it started": {Seen{VMI: vmi(v1.Scheduled, deletedFor(0)), Pod: pod(), Guest: guest(guestv1.State_PHASE_NOT_STARTED)}, ""},
		"never started a second time": {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: guest(guestv1.State_PHASE_NOT_STARTED)},
			"phase Running, Synchronized=False the launcher has no guest any more; again in 30s"},
		"started":             {Seen{VMI: vmi(v1.Scheduled), Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING)}, "phase Running taken; Normal Created; Normal Started"},
		"runs":                {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING)}, "phase Running"},
		"paused":              {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: guest(guestv1.State_PHASE_PAUSED)}, "phase Running, Paused=True VMI was paused by user"},
		"runs, unheard":       {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING), Silent: gone, Loss: "EOF"}, "phase Running, Synchronized=False no answer from the launcher: EOF"},
		"its Pod is not seen": {Seen{VMI: vmi(v1.Running), Guest: guest(guestv1.State_PHASE_RUNNING)}, ""},

		"deleted": {Seen{VMI: vmi(v1.Running, deletedFor(time.Second)), Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING)},
			"asking the guest to shut down; phase Running; again in 5s"},
		"deleted, asked, near the end": {Seen{VMI: vmi(v1.Running, deletedFor(28*time.Second)), Pod: pod(), Guest: guest(guestv1.State_PHASE_SHUTTING_DOWN)},
			"asking the guest to shut down; phase Running; again in 2s"},
		"deleted, asked, its Pod deleted too": {Seen{VMI: vmi(v1.Running, deletedFor(time.Second)), Pod: deletedPod(), Guest: guest(guestv1.State_PHASE_SHUTTING_DOWN)},
			"phase Running; again in 5s"},
		"deleted, not asked, its Pod deleted too": {Seen{VMI: vmi(v1.Running, deletedFor(time.Second)), Pod: deletedPod(), Guest: guest(guestv1.State_PHASE_RUNNING)},
			"asking the guest to shut down; phase Running; again in 5s"},
		"deleted, deaf": {Seen{VMI: vmi(v1.Running, deletedFor(30*time.Second)), Pod: pod(), Guest: guest(guestv1.State_PHASE_SHUTTING_DOWN)},
			"ending the guest: terminationGracePeriodSeconds of 30 are over; phase Running; again in 5s"},
		"deleted, no grace": {Seen{VMI: vmi(v1.Running, deletedFor(0), func(m *v1.VirtualMachineInstance) { m.Spec.TerminationGracePeriodSeconds = new(int64(0)) }), Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING)},
			"ending the guest: terminationGracePeriodSeconds of 0 are over; phase Running; again in 5s"},

		"shut down":             {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: stoppedGuest(guestv1.State_STOP_REASON_SHUTDOWN)}, "phase Succeeded; Normal Stopped"},
		"shut down at once":     {Seen{VMI: vmi(v1.Scheduled), Pod: pod(), Guest: stoppedGuest(guestv1.State_STOP_REASON_SHUTDOWN)}, "phase Succeeded taken; Normal Stopped"},
		"destroyed":             {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: stoppedGuest(guestv1.State_STOP_REASON_DESTROYED)}, "phase Failed GuestDestroyed, Synchronized=False the guest was ended from outside; Warning Stopped"},
		"destroyed as asked":    {Seen{VMI: vmi(v1.Running, deletedFor(time.Minute)), Pod: pod(), Guest: stoppedGuest(guestv1.State_STOP_REASON_DESTROYED)}, "phase Succeeded; Normal Stopped"},
		"crashed":               {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: stoppedGuest(guestv1.State_STOP_REASON_CRASHED)}, "phase Failed GuestCrashed, Synchronized=False the guest crashed; Warning Stopped"},
		"QEMU won't start":      {Seen{VMI: vmi(v1.Scheduled), Pod: pod(), Guest: stoppedGuest(guestv1.State_STOP_REASON_FAILED)}, "phase Failed taken GuestFailed, Synchronized=False QEMU could not be started, or died; Warning Stopped"},
		"a reason nobody knows": {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: stoppedGuest(99)}, "phase Failed GuestFailed, Synchronized=False QEMU could not be started, or died; Warning Stopped"},

		"launcher ended well, unheard":    {Seen{VMI: vmi(v1.Running), Pod: exitedPod(0, "Completed", ""), Silent: now}, "phase Succeeded; Normal Stopped"},
		"launcher failed":                 {Seen{VMI: vmi(v1.Running), Pod: exitedPod(1, "Error", "QEMU died\n"), Silent: now}, "phase Failed LauncherFailed, Synchronized=False QEMU died; Warning Stopped"},
		"libvirt died":                    {Seen{VMI: vmi(v1.Running), Pod: exitedPod(3, "Error", "libvirtd was killed"), Guest: guest(guestv1.State_PHASE_RUNNING)}, "phase Failed LibvirtFailed, Synchronized=False libvirtd was killed; Warning Stopped"},
		"out of memory":                   {Seen{VMI: vmi(v1.Running), Pod: exitedPod(1, "OOMKilled", ""), Silent: now}, "phase Failed OOMKilled, Synchronized=False the launcher Pod needed more memory than its limit; Warning Stopped"},
		"launcher killed":                 {Seen{VMI: vmi(v1.Running), Pod: exitedPod(137, "Error", "log\nlog"), Silent: now}, "phase Failed LauncherKilled, Synchronized=False the launcher was killed by SIGKILL (exit code 137); Warning Stopped"},
		"the launcher's word counts more": {Seen{VMI: vmi(v1.Running), Pod: exitedPod(1, "Error", ""), Guest: stoppedGuest(guestv1.State_STOP_REASON_CRASHED)}, "phase Failed GuestCrashed, Synchronized=False the guest crashed; Warning Stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.seen.Node = here
			before := tc.seen.VMI.DeepCopy()
			if d := cmp.Diff(tc.want, summary(For(now, tc.seen))); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(before, tc.seen.VMI); d != "" {
				t.Errorf("the VMI was changed: %s", d)
			}
		})
	}
}

func TestTheFirstStatusSaysAll(t *testing.T) {
	p := For(now, Seen{Node: here, VMI: vmi(v1.Scheduled, func(m *v1.VirtualMachineInstance) {
		m.Status.PhaseTransitionTimestamps = []v1.VirtualMachineInstancePhaseTransitionTimestamp{{Phase: v1.Scheduled, PhaseTransitionTimestamp: metav1.NewTime(now.Add(-time.Second))}}
	}), Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING)})
	want := &v1.VirtualMachineInstanceStatus{
		Phase: v1.Running,
		PhaseTransitionTimestamps: []v1.VirtualMachineInstancePhaseTransitionTimestamp{
			{Phase: v1.Scheduled, PhaseTransitionTimestamp: metav1.NewTime(now.Add(-time.Second))},
			{Phase: v1.Running, PhaseTransitionTimestamp: metav1.NewTime(now)},
		},
		Interfaces: []v1.VirtualMachineInstanceNetworkInterface{{
			Name: "default", MAC: "02:ab:00:00:00:01", IP: "10.88.0.7", IPs: []string{"10.88.0.7", "fd00::7"}, PodInterfaceName: "eth0",
			InfoSource: "domain", QueueCount: 1, LinkState: "up",
		}},
		Machine:      &v1.Machine{Type: "pc-q35-10.0"},
		VolumeStatus: []v1.VolumeStatus{{Name: "root", Target: "vda"}},
		Conditions: []v1.VirtualMachineInstanceCondition{{
			Type: v1.VirtualMachineInstanceIsMigratable, Status: k8sv1.ConditionFalse, Reason: "NotMigratable",
			Message: notMigratable, LastTransitionTime: metav1.NewTime(now),
		}},
	}
	if d := cmp.Diff(want, p.Status); d != "" {
		t.Error(d)
	}
}

// A round after a round changes nothing, so no second write is sent.
func TestAStatusThatWasWrittenIsSaidAgain(t *testing.T) {
	s := Seen{Node: here, VMI: vmi(v1.Scheduled), Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING)}
	first := For(now, s).Status
	for name, next := range map[string]Seen{
		"heard of": {Node: here, Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING)},
		// A new node agent that hasn't heard of the launcher, which then ends: what the guest had is not forgotten.
		"not heard of": {Node: here, Pod: exitedPod(0, "", "")},
	} {
		next.VMI = vmi(v1.Running, func(m *v1.VirtualMachineInstance) {
			m.Status = *first.DeepCopy()
			m.Status.NodeName = here
		})
		again := For(now.Add(time.Hour), next).Status
		again.Phase, again.PhaseTransitionTimestamps = first.Phase, first.PhaseTransitionTimestamps
		if d := cmp.Diff(first, again); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestAFailureIsToldOnce(t *testing.T) {
	s := Seen{Node: here, VMI: vmi(v1.Scheduled), Pod: pod(), Guest: guest(guestv1.State_PHASE_NOT_STARTED)}
	p := Failed(now, s, For(now, s), errors.New("no bridge"))
	if got, want := summary(Plan{Status: p.Status, Take: p.Take, Events: p.Events}), "phase Scheduled taken, Synchronized=False no bridge; Warning SyncFailed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.VMI.Status.Conditions = p.Status.Conditions
	if again := Failed(now, s, For(now, s), errors.New("no bridge")); len(again.Events) != 0 {
		t.Errorf("told again: %v", again.Events)
	}
	s.Guest = guest(guestv1.State_PHASE_RUNNING)
	if got := summary(For(now, s)); strings.Contains(got, "Synchronized") {
		t.Errorf("it stays after a success: %s", got)
	}
}

// S10: a Pod is the VMI's by its UID and owner, never by a label.
func TestOnlyTheVMIsOwnPodCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*k8sv1.Pod)
		want   bool
	}{
		"its own":           {func(*k8sv1.Pod) {}, true},
		"not an active one": {func(p *k8sv1.Pod) { p.UID = "other" }, false},
		"another VMI's":     {func(p *k8sv1.Pod) { p.OwnerReferences[0].UID = "other" }, false},
		"nobody's, well labelled": {func(p *k8sv1.Pod) {
			p.OwnerReferences, p.Labels = nil, map[string]string{"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": string(vmiUID)}
		}, false},
		"owned, not controlled": {func(p *k8sv1.Pod) { p.OwnerReferences[0].Controller = nil }, false},
		"on another node":       {func(p *k8sv1.Pod) { p.Spec.NodeName = "node-b" }, false},
		"in the node's network": {func(p *k8sv1.Pod) { p.Spec.HostNetwork = true }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod()
			tc.change(p)
			if got := LauncherOf(here, vmi(v1.Running), []k8sv1.Pod{*p}); (got != nil) != tc.want {
				t.Errorf("got %v, want %v", got != nil, tc.want)
			}
		})
	}
}

func TestOnlyHandedOverVMIsOfThisNodeAreOurs(t *testing.T) {
	for phase, want := range map[v1.VirtualMachineInstancePhase]bool{"": false, v1.Pending: false, v1.Scheduling: false, v1.Scheduled: true, v1.Running: true, v1.Succeeded: false, v1.Failed: false} {
		if got := Ours(here, vmi(phase)); got != want {
			t.Errorf("%q: got %v, want %v", phase, got, want)
		}
		if Ours("node-b", vmi(phase)) {
			t.Errorf("%q: another node's is ours", phase)
		}
	}
}

// S12: whatever a launcher says, what reaches the status is bounded and can be stored.
func FuzzALaunchersWordIsBounded(f *testing.F) {
	f.Add("message", "machine", "root", "vda", int32(2), int32(1))
	f.Add("\x00\xff\n", strings.Repeat("m", 100), "seed", "../sda", int32(5), int32(3))
	f.Fuzz(func(t *testing.T, message, machine, disk, target string, phase, reason int32) {
		g := &guestv1.State{Phase: guestv1.State_Phase(phase), StopReason: guestv1.State_StopReason(reason), Message: message, Machine: machine}
		for range 1000 {
			g.Disks = append(g.Disks, &guestv1.Disk{Name: disk, Target: target})
		}
		st := For(now, Seen{Node: here, VMI: vmi(v1.Running), Pod: pod(), Guest: g}).Status
		if st == nil {
			return
		}
		if len(st.VolumeStatus) > 2 || st.Machine != nil && len(st.Machine.Type) > 63 {
			t.Errorf("unbounded: %+v", st)
		}
		for _, c := range st.Conditions {
			if len(c.Message) > maxText || !utf8.ValidString(c.Message) || strings.ContainsAny(c.Message, "\x00\n\r\x1b") {
				t.Errorf("message %q", c.Message)
			}
		}
	})
}
