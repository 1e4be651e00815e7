package plan

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

// want is a condition as it has to be now.
type want struct {
	kind            string
	status          metav1.ConditionStatus
	reason, message string
}

// most is the length of a condition's message; the API server allows 32 KiB.
const most = 2000

// conditions returns exactly those that are wanted; the time of one moves when its status does.
func conditions(now time.Time, b *v1alpha1.Bundle, wanted ...want) []metav1.Condition {
	var all []metav1.Condition
	for _, w := range wanted {
		c := metav1.Condition{
			Type: w.kind, Status: w.status, Reason: w.reason, Message: cut(w.message),
			ObservedGeneration: b.Generation, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
		}
		if old := find(b, w.kind); old != nil && old.Status == w.status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		all = append(all, c)
	}
	return all
}

func cut(message string) string {
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most], "") + "…"
}

func find(b *v1alpha1.Bundle, kind string) *metav1.Condition {
	for i, c := range b.Status.Conditions {
		if c.Type == kind {
			return &b.Status.Conditions[i]
		}
	}
	return nil
}

// since is how long the condition has had its status; none is no time.
func since(now time.Time, b *v1alpha1.Bundle, kind string) time.Duration {
	if c := find(b, kind); c != nil {
		return now.Sub(c.LastTransitionTime.Time)
	}
	return 0
}

// base is the status without a verdict: what was applied stands.
func base(s Seen) v1alpha1.BundleStatus {
	old := s.Bundle.Status
	st := v1alpha1.BundleStatus{
		ObservedGeneration:    s.Bundle.Generation,
		LastAttemptedRevision: old.LastAttemptedRevision,
		LastAppliedRevision:   old.LastAppliedRevision,
		Inventory:             old.Inventory.DeepCopy(),
		History:               slices.Clone(old.History),
		LastHealthyRevision:   old.LastHealthyRevision,
	}
	if s.Back || s.Revision == "" {
		st.RolledBack = old.RolledBack.DeepCopy()
	}
	if s.Revision != "" {
		st.LastAttemptedRevision = s.Revision
	}
	return st
}

// recording puts a verdict on the revision at the head of the history; the same verdict as before changes nothing.
func recording(now time.Time, history []v1alpha1.RevisionOutcome, revision, outcome string) []v1alpha1.RevisionOutcome {
	head := v1alpha1.RevisionOutcome{Revision: revision, Outcome: outcome, Time: metav1.NewTime(now.Truncate(time.Second))}
	switch {
	case revision == "", len(history) > 0 && history[0].Revision == revision && history[0].Outcome == outcome:
		return history
	case len(history) > 0 && history[0].Revision == revision:
		history = history[1:]
	}
	history = append([]v1alpha1.RevisionOutcome{head}, history...)
	return history[:min(len(history), v1alpha1.BundleHistory)]
}

// retry is when a Bundle that has been failing for so long is tried again.
func retry(now time.Time, b *v1alpha1.Bundle, failing time.Duration) time.Time {
	if r := b.Spec.RetryInterval; r != nil && r.Duration > 0 {
		return now.Add(r.Duration)
	}
	return now.Add(min(interval(b), max(failing/2, 5*time.Second)))
}

// progress is the status while a revision is on its way. A new revision has its whole time.
func progress(now time.Time, s Seen, reason, message string) v1alpha1.BundleStatus {
	st := base(s)
	st.Conditions = conditions(now, s.Bundle,
		want{"Ready", metav1.ConditionUnknown, reason, message},
		want{"Reconciling", metav1.ConditionTrue, reason, message})
	if s.Revision != "" && s.Revision != s.Bundle.Status.LastAttemptedRevision {
		for i := range st.Conditions {
			st.Conditions[i].LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		}
	}
	return st
}

// overdue tells whether this revision has had its time to become healthy.
func overdue(now time.Time, s Seen) bool {
	c := find(s.Bundle, "Ready")
	if c == nil || s.Bundle.Status.LastAttemptedRevision != s.Revision {
		return false
	}
	switch c.Status {
	case metav1.ConditionUnknown:
		return now.Sub(c.LastTransitionTime.Time) > Timeout(s.Bundle)
	case metav1.ConditionFalse:
		return c.Reason == Unhealthy || c.Reason == PruneFailed || c.Reason == RollbackFailed
	}
	return false
}

func interval(b *v1alpha1.Bundle) time.Duration {
	if b.Spec.Interval != nil && b.Spec.Interval.Duration > 0 {
		return b.Spec.Interval.Duration
	}
	return v1alpha1.DefaultBundleInterval
}

// Timeout is how long one attempt may take, and how long a revision may take to become healthy.
func Timeout(b *v1alpha1.Bundle) time.Duration {
	if b.Spec.Timeout != nil && b.Spec.Timeout.Duration > 0 {
		return b.Spec.Timeout.Duration
	}
	return v1alpha1.DefaultBundleTimeout
}

// Waits tells whether all that is applied has to become healthy.
func Waits(b *v1alpha1.Bundle) bool { return b.Spec.Wait == nil || *b.Spec.Wait }

func inventory(b *v1alpha1.Bundle) []v1alpha1.ResourceRef {
	if b.Status.Inventory == nil {
		return nil
	}
	return b.Status.Inventory.Entries
}

// holding returns the inventory of these objects; of none it is absent: an empty list has no place in an apply.
func holding(refs []v1alpha1.ResourceRef) *v1alpha1.ResourceInventory {
	if len(refs) == 0 {
		return nil
	}
	return &v1alpha1.ResourceInventory{Entries: refs}
}

// recorded tells whether the inventory names all that is wanted: what is applied is written down first.
func recorded(s Seen) bool { return len(minus(s.Wanted, inventory(s.Bundle))) == 0 }

func minus(refs, other []v1alpha1.ResourceRef) []v1alpha1.ResourceRef {
	have := map[string]bool{}
	for _, r := range other {
		have[r.ID] = true
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r v1alpha1.ResourceRef) bool { return have[r.ID] })
}

func common(refs, other []v1alpha1.ResourceRef) []v1alpha1.ResourceRef {
	return minus(refs, minus(refs, other))
}

func union(a, b []v1alpha1.ResourceRef) []v1alpha1.ResourceRef {
	all := append(slices.Clone(a), minus(b, a)...)
	slices.SortFunc(all, func(x, y v1alpha1.ResourceRef) int { return strings.Compare(x.ID, y.ID) })
	return all
}
