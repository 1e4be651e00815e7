package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

// Suspended is the reason of a Bundle that is left as it is.
const Suspended = "Suspended"

// Suspend returns the status of a Bundle that is suspended: how it stood stays its verdict, so that one that was
// healthy is, but nothing is reconciled, and people are told why nothing happens.
func Suspend(now time.Time, b *v1alpha1.Bundle) v1alpha1.BundleStatus {
	st := base(Seen{Bundle: b})
	ready := want{"Ready", metav1.ConditionUnknown, Suspended, "suspended before anything was applied"}
	if st.LastAppliedRevision != "" {
		ready.message = "suspended; applied revision " + st.LastAppliedRevision
	}
	if c := find(b, "Ready"); c != nil {
		ready.status = c.Status
		if c.Status == metav1.ConditionFalse {
			ready.message = "suspended; " + c.Message
		}
		if c.Reason == Suspended {
			ready.message = c.Message
		}
	}
	all := []want{ready}
	if c := find(b, "Stalled"); c != nil && c.Status == metav1.ConditionTrue {
		all = append(all, want{"Stalled", c.Status, c.Reason, c.Message})
	}
	st.Conditions = conditions(now, b, all...)
	return marked(now, b, st)
}
