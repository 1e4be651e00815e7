package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
)

// The history has the last five verdicts, the newest first; the same verdict again changes nothing.
func TestHistory(t *testing.T) {
	b, at := bundle(applied("r0", one)), now
	round := func(revision, reason string) string {
		s := plan.Seen{Bundle: b, Revision: revision, Wanted: refs{one}}
		if reason != "" {
			s.Failure = &plan.Failure{Reason: reason}
		}
		b.Status = plan.For(at, s).Status
		at = at.Add(time.Hour)
		var all []string
		for _, h := range b.Status.History {
			all = append(all, fmt.Sprintf("%s %s %.0f", h.Revision, h.Outcome, h.Time.Sub(now).Hours()))
		}
		return strings.Join(all, ", ")
	}
	for i, step := range []struct{ revision, reason, want string }{
		{"r0", "", "r0 ReconciliationSucceeded 0"},
		{"r0", "", "r0 ReconciliationSucceeded 0"},
		{"", plan.FetchFailed, "r0 ReconciliationSucceeded 0"},
		{"r1", plan.Refused, "r1 Refused 3, r0 ReconciliationSucceeded 0"},
		{"r1", "", "r1 ReconciliationSucceeded 4, r0 ReconciliationSucceeded 0"},
		{"r0", "", "r0 ReconciliationSucceeded 5, r1 ReconciliationSucceeded 4, r0 ReconciliationSucceeded 0"},
	} {
		if got := round(step.revision, step.reason); got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
	for i := range 9 {
		round(fmt.Sprint("n", i), "")
	}
	if h := b.Status.History; len(h) != 5 || h[0].Revision != "n8" || h[4].Revision != "n4" {
		t.Errorf("after nine more: %v", h)
	}
	if st := plan.Suspend(at, b); len(st.History) != 5 {
		t.Errorf("suspended, it has %v", st.History)
	}
}

// What has not come to a verdict is not in it.
func TestHistoryOfWhatIsOnItsWay(t *testing.T) {
	b := bundle(applied("r0", one))
	if p := plan.For(now, plan.Seen{Bundle: b, Revision: "r1", Wanted: refs{one}, Changes: []string{"x"}}); len(p.Status.History) != 0 {
		t.Errorf("got %v", p.Status.History)
	}
}

func TestRetryInterval(t *testing.T) {
	b := bundle(applied("r1", one), since("Ready", metav1.ConditionFalse, plan.FetchFailed, time.Hour))
	b.Spec.RetryInterval = &metav1.Duration{Duration: 20 * time.Second}
	if p := plan.For(now, plan.Seen{Bundle: b, Failure: &broken}); p.Recheck != now.Add(20*time.Second) {
		t.Errorf("again in %s", p.Recheck.Sub(now))
	}
	if p := plan.For(now, plan.Seen{Bundle: b, Revision: "r1", Wanted: []v1alpha1.ResourceRef{one}}); p.Recheck != now.Add(v1alpha1.DefaultBundleInterval) {
		t.Errorf("after a success again in %s", p.Recheck.Sub(now))
	}
}
