package plan

import (
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

func TestVirtualCPUsThatAreBehindArePutFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		seen Seen
		want bool
	}{
		"they are first":           {Seen{VMI: vmi(v1.Running), Pod: pod()}, false},
		"they are behind":          {Seen{VMI: vmi(v1.Running), Pod: pod(), Behind: true}, true},
		"just started":             {Seen{VMI: vmi(v1.Scheduled), Pod: pod(), Behind: true}, true},
		"it is asked to shut down": {Seen{VMI: vmi(v1.Running, deletedFor(time.Second)), Pod: pod(), Behind: true}, false},
	} {
		tc.seen.Node, tc.seen.Guest = here, guest(guestv1.State_PHASE_RUNNING)
		if got := plans[Prefer](tc.seen); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
