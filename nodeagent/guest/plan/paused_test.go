package plan

import (
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// A paused guest hears no power button: it has its grace period to be let go on in, and then it is ended.
func TestAPausedGuestIsNotAskedToShutDown(t *testing.T) {
	const paused = "phase Running, Paused=True VMI was paused by user; again in 5s"
	for ago, want := range map[time.Duration]string{
		time.Second:      paused,
		40 * time.Second: "ending the guest: terminationGracePeriodSeconds of 30 are over; " + paused,
	} {
		s := Seen{VMI: vmi(v1.Running, deletedFor(ago)), Pod: pod(), Guest: guest(guestv1.State_PHASE_PAUSED)}
		if got := summary(For(now, s)); got != want {
			t.Errorf("deleted for %s: got %q, want %q", ago, got, want)
		}
	}
}
