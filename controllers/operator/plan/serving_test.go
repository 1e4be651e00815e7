package plan_test

import (
	"testing"
	"time"

	"virtstack.io/virtstack/controllers/operator/plan"
)

func TestAnAPIIsRegisteredWhileItsServerIsThere(t *testing.T) {
	for name, tc := range map[string]struct {
		is     plan.Registration
		served bool
		act    string
	}{
		"it answers":           {plan.Registration{}, false, ""},
		"away for a moment":    {plan.Registration{Away: now.Add(time.Second - plan.Patience)}, false, ""},
		"away":                 {plan.Registration{Away: now.Add(-plan.Patience)}, false, "withdrawing, its server being away, APIService v1.x"},
		"withdrawn":            {plan.Registration{Missing: true}, false, ""},
		"withdrawn, it's back": {plan.Registration{Missing: true}, true, "registering, its server being back, APIService v1.x"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.is.Object = "APIService v1.x"
			p := plan.For(now, seen(kubevirt(deployed("t")), upTo(plan.StageSeen{Stage: plan.NodeAgents, Waiting: "0 of 1"}), func(s *plan.Seen) {
				s.Registrations, s.Served = []plan.Registration{tc.is}, tc.served
			}))
			if got := acts(p); got != tc.act {
				t.Errorf("got %q, want %q", got, tc.act)
			}
			if p.Recheck.IsZero() || row(p.Status.Conditions) != "--FTF" {
				t.Errorf("looks again at %v, says %v", p.Recheck, p.Status.Conditions)
			}
		})
	}
}
