package plan

import (
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// toldToEnd is a guest whose launcher was told to end.
func toldToEnd(s *guestv1.State) *guestv1.State {
	s.ToldToEnd = true
	return s
}

// evictedPod is one that the kubelet ended, of which the API server knows no deletion.
func evictedPod() *k8sv1.Pod {
	p := exitedPod(0, "Completed", "")
	p.Status.Phase, p.Status.Reason = k8sv1.PodFailed, "Evicted"
	return p
}

// A guest that shuts down because its Pod is taken away did not wish to go. Source: kubevirt/kubevirt#9823.
func TestEndsThatAreNotTheGuestsWish(t *testing.T) {
	const taken = "phase Failed LauncherPodLost, Synchronized=False the launcher Pod was taken away, and the guest was shut down for it; it didn't end by itself; Warning Stopped"
	for name, tc := range map[string]struct {
		seen Seen
		want string
	}{
		"shut down, its Pod taken away":                   {Seen{VMI: vmi(v1.Running), Pod: deletedPod(), Guest: stoppedGuest(guestv1.State_STOP_REASON_SHUTDOWN)}, taken},
		"shut down for its Pod, whose end isn't seen yet": {Seen{VMI: vmi(v1.Running), Pod: pod(), Guest: toldToEnd(stoppedGuest(guestv1.State_STOP_REASON_SHUTDOWN))}, taken},
		"destroyed for its Pod":                           {Seen{VMI: vmi(v1.Running), Pod: deletedPod(), Guest: stoppedGuest(guestv1.State_STOP_REASON_DESTROYED)}, taken},
		"its Pod evicted, unheard":                        {Seen{VMI: vmi(v1.Running), Pod: evictedPod(), Silent: now}, taken},
		"its Pod goes with its VMI":                       {Seen{VMI: vmi(v1.Running, deletedFor(time.Second)), Pod: deletedPod(), Guest: toldToEnd(stoppedGuest(guestv1.State_STOP_REASON_SHUTDOWN))}, "phase Succeeded; Normal Stopped"},
	} {
		tc.seen.Node = here
		if got := summary(For(now, tc.seen)); got != tc.want {
			t.Errorf("%s: got %s\nwant %s", name, got, tc.want)
		}
	}
}
