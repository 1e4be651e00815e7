package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
)

func saying(message string) change {
	return func(b *v1alpha1.Bundle) { b.Status.Conditions[len(b.Status.Conditions)-1].Message = message }
}

// A suspended Bundle says so and keeps its verdict; what was applied stands.
func TestSuspended(t *testing.T) {
	for name, tc := range map[string]struct {
		bundle *v1alpha1.Bundle
		want   string // of Ready
		also   int
	}{
		"healthy":         {bundle(applied("r1", one), since("Ready", metav1.ConditionTrue, plan.Succeeded, time.Hour)), "True Suspended: suspended; applied revision r1", 0},
		"never looked at": {bundle(), "Unknown Suspended: suspended before anything was applied", 0},
		"on its way": {bundle(applied("r1", one), since("Ready", metav1.ConditionUnknown, plan.Progressing, time.Minute),
			since("Reconciling", metav1.ConditionTrue, plan.Progressing, time.Minute)), "Unknown Suspended: suspended; applied revision r1", 0},
		"failed": {bundle(applied("r1", one), since("Ready", metav1.ConditionFalse, plan.BuildFailed, time.Minute), saying("r2: no YAML"),
			since("Stalled", metav1.ConditionTrue, plan.BuildFailed, time.Minute)), "False Suspended: suspended; r2: no YAML", 1},
	} {
		st := plan.Suspend(now, tc.bundle)
		if st.ObservedGeneration != 2 || len(st.Conditions) != 1+tc.also {
			t.Errorf("%s: got %+v", name, st)
		}
		c := st.Conditions[0]
		if got := string(c.Status) + " " + c.Reason + ": " + c.Message; got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
		if d := cmp.Diff(tc.bundle.Status.Inventory, st.Inventory); d != "" {
			t.Errorf("%s: the inventory changed: %s", name, d)
		}
		again := tc.bundle.DeepCopy()
		again.Status = st
		if d := cmp.Diff(st, plan.Suspend(now.Add(time.Hour), again)); d != "" {
			t.Errorf("%s: said another way an hour later: %s", name, d)
		}
	}
}
