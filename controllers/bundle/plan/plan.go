// Package plan decides what is done for a Bundle. It is pure.
package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

// RequestedAt is the annotation whose change makes a Bundle look at its source at once.
const RequestedAt = "reconcile.virtstack.io/requestedAt"

// Reasons of conditions and events.
const (
	Succeeded   = "ReconciliationSucceeded"
	Progressing = "Progressing"
	Waiting     = "WaitingForHealth"
	FetchFailed = "FetchFailed"
	// VerificationFailed is that of a revision whose signature is not accepted.
	VerificationFailed = "VerificationFailed"
	BuildFailed        = "BuildFailed"
	Refused            = "Refused"
	ApplyFailed        = "ApplyFailed"
	Unhealthy          = "HealthCheckFailed"
	PruneFailed        = "PruneFailed"
	Removing           = "Removing"
	// DependencyNotReady and DependencyCycle are those of a Bundle that waits for others, the second for ever.
	DependencyNotReady = "DependencyNotReady"
	DependencyCycle    = "DependencyCycle"
	// HealthCheckInvalid is that of expressions that are no CEL.
	HealthCheckInvalid = "HealthCheckInvalid"
	// ApprovalNeeded is that of a revision that removes more machines than it may.
	ApprovalNeeded = "ApprovalNeeded"
)

// Failure is why a revision is not applied. Final says that the same revision can't succeed later.
type Failure struct {
	Reason, Message string
	Final           bool
}

// Seen is what one round has observed.
type Seen struct {
	Bundle *v1alpha1.Bundle
	// Revision is what the source has now, "" if it could not be asked.
	Revision string
	// Back says that Revision is in place of what the source has, which has failed.
	Back bool
	// Failure is of fetch, build or check; what follows is then not known.
	Failure *Failure
	// Wanted are all objects of the revision, Changes those that have to be written.
	Wanted  []v1alpha1.ResourceRef
	Changes []string
	// Waiting says what is not healthy yet of what is waited for, Failed that it won't be by itself. Looked at when there
	// are no changes.
	Waiting string
	Failed  bool
	// Left are the objects in the inventory that exist and are not wanted, all of them when the Bundle is being
	// deleted; looked at last.
	Left []v1alpha1.ResourceRef
	// Protected are those of Left that nobody is to delete.
	Protected []v1alpha1.ResourceRef
	// InTheWay are the machines of Left that have a disk which one that is waited for needs.
	InTheWay []v1alpha1.ResourceRef
}

// Plan is what one round does.
type Plan struct {
	Actions []Action
	Status  v1alpha1.BundleStatus
	Recheck time.Time
}

// Underway tells whether the revision is on its way: another round goes on with it.
func (p Plan) Underway() bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == "Ready" && c.Status == metav1.ConditionUnknown
	})
}

// Action is one thing to do.
type Action interface{ String() string }

// The actions.
type (
	// Hold adds the finalizer.
	Hold struct{}
	// Release drops it. Left behind are objects that could not be removed in time, kept are those for the sake of
	// protected machines.
	Release struct{ Behind, Kept []v1alpha1.ResourceRef }
	// Apply writes the changes of the revision.
	Apply struct {
		Revision string
		Objects  []string
	}
	// Remove deletes objects that the revision doesn't have; without a revision, because the Bundle goes.
	Remove struct {
		Revision string
		Objects  []v1alpha1.ResourceRef
	}
)

func (Hold) String() string    { return "adding the finalizer" }
func (Release) String() string { return "dropping the finalizer" }
func (a Apply) String() string {
	return fmt.Sprintf("applying %s: %s", a.Revision, few(a.Objects))
}
func (a Remove) String() string {
	if a.Revision == "" {
		return "removing all: " + few(ids(a.Objects))
	}
	return fmt.Sprintf("removing what is not in %s: %s", a.Revision, few(ids(a.Objects)))
}

func ids(refs []v1alpha1.ResourceRef) []string {
	var all []string
	for _, r := range refs {
		all = append(all, r.ID)
	}
	return all
}

func few(objects []string) string {
	const most = 5
	if len(objects) <= most {
		return strings.Join(objects, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(objects[:most], ", "), len(objects)-most)
}

// For returns the plan of one round.
func For(now time.Time, s Seen) Plan {
	p := round(now, s)
	p.Status = marked(now, s.Bundle, p.Status)
	return p
}

func round(now time.Time, s Seen) Plan {
	b := s.Bundle
	if b.DeletionTimestamp != nil {
		return deletion(now, s)
	}
	if !slices.Contains(b.Finalizers, v1alpha1.BundleFinalizer) {
		return Plan{Actions: []Action{Hold{}}, Status: progress(now, s, Progressing, "making the first step"), Recheck: now.Add(time.Millisecond)}
	}
	if s.Failure != nil {
		return Failed(now, s, *s.Failure)
	}
	if f := unapproved(s); f != nil {
		return Failed(now, s, *f)
	}
	if !recorded(s) {
		p := Plan{Status: progress(now, s, Progressing, "applying "+s.Revision), Recheck: now.Add(time.Millisecond)}
		p.Status.Inventory = holding(union(s.Wanted, inventory(b)))
		return p
	}
	if len(s.Changes) > 0 {
		p := Plan{Actions: []Action{Apply{s.Revision, s.Changes}}, Recheck: now.Add(500 * time.Millisecond)}
		p.Status = progress(now, s, Waiting, s.Revision+" is applied, looking at its health")
		p.Status.LastAppliedRevision = s.Revision
		return p
	}
	gone, kept := removals(s)
	if s.Waiting != "" {
		if gone = common(gone, s.InTheWay); len(gone) == 0 || overdue(now, s) {
			return unhealthy(now, s)
		}
	}
	if len(gone) > 0 {
		return remove(now, s, gone)
	}
	return finish(now, s, kept)
}

// remove removes what is left over.
func remove(now time.Time, s Seen, gone []v1alpha1.ResourceRef) Plan {
	if overdue(now, s) {
		return Failed(now, s, Failure{Reason: PruneFailed, Message: "can't be removed: " + Remove{s.Revision, gone}.String()})
	}
	p := Plan{Actions: []Action{Remove{s.Revision, gone}}, Recheck: now.Add(time.Second)}
	p.Status = progress(now, s, Progressing, Remove{s.Revision, gone}.String())
	p.Status.LastAppliedRevision = s.Revision
	return p
}

// finish is the end of a revision: nothing is left over but what is kept.
func finish(now time.Time, s Seen, kept []v1alpha1.ResourceRef) Plan {
	b := s.Bundle
	st := base(s)
	st.LastAppliedRevision = s.Revision
	st.Inventory = holding(union(s.Wanted, kept))
	message := "applied revision " + s.Revision
	if len(kept) > 0 {
		message += "; kept, though not in it, as long as machines are protected: " + few(ids(kept))
	}
	if s.Back {
		message = differ(st.RolledBack)
		st.Conditions = conditions(now, b, want{"Ready", metav1.ConditionFalse, RolledBack, message}, want{"Stalled", metav1.ConditionTrue, RolledBack, message})
		st.History = recording(now, st.History, s.Revision, RolledBack)
		return Plan{Status: st, Recheck: now.Add(interval(b))}
	}
	if judges(b) {
		st.LastHealthyRevision = s.Revision
	}
	st.Conditions = conditions(now, b, want{"Ready", metav1.ConditionTrue, Succeeded, message})
	st.History = recording(now, st.History, s.Revision, Succeeded)
	return Plan{Status: st, Recheck: now.Add(interval(b))}
}

func unhealthy(now time.Time, s Seen) Plan {
	b := s.Bundle
	message := s.Revision + " is applied, waiting for " + s.Waiting
	if s.Failed || overdue(now, s) {
		f := Failure{Reason: Unhealthy, Message: message}
		p := Failed(now, s, f)
		if r := back(now, s, f); r != nil { // what is gone back to is looked for by the next round
			p.Status.RolledBack, p.Recheck = r, now.Add(time.Millisecond)
		}
		return p
	}
	p := Plan{Status: progress(now, s, Waiting, message)}
	p.Status.LastAppliedRevision = s.Revision
	p.Recheck = now.Add(min(max(since(now, b, "Ready")/4, time.Second), 30*time.Second))
	return p
}

// Failed returns the plan after a failure: what was applied stands, and it is tried again, later each time.
func Failed(now time.Time, s Seen, f Failure) Plan {
	b := s.Bundle
	st := base(s)
	if f.Reason == Unhealthy || f.Reason == PruneFailed {
		st.LastAppliedRevision = s.Revision
	}
	if s.Back {
		f = goingBack(b, f)
	}
	failing := time.Duration(0)
	if c := find(b, "Ready"); c != nil && c.Status == metav1.ConditionFalse {
		failing = now.Sub(c.LastTransitionTime.Time)
	}
	all := []want{{"Ready", metav1.ConditionFalse, f.Reason, f.Message}}
	switch {
	case f.Reason == DependencyNotReady: // the dependency itself says whether that is for ever
		all = append(all, want{"Reconciling", metav1.ConditionTrue, f.Reason, f.Message})
	case f.Final || failing > Timeout(b) || overdue(now, s):
		all = append(all, want{"Stalled", metav1.ConditionTrue, f.Reason, f.Message})
	default:
		all = append(all, want{"Reconciling", metav1.ConditionTrue, Progressing, "trying again: " + f.Message})
	}
	st.Conditions = conditions(now, b, all...)
	st.History = recording(now, st.History, s.Revision, f.Reason)
	return Plan{Status: marked(now, b, st), Recheck: retry(now, b, failing)}
}

func deletion(now time.Time, s Seen) Plan {
	b := s.Bundle
	if !slices.Contains(b.Finalizers, v1alpha1.BundleFinalizer) {
		return Plan{Status: b.Status}
	}
	left, kept := removals(s)
	late := now.Sub(b.DeletionTimestamp.Time) > Timeout(b)
	if len(left) == 0 || late {
		return Plan{Actions: []Action{Release{Behind: left, Kept: kept}}, Status: b.Status}
	}
	st := b.Status
	st.Conditions = conditions(now, b,
		want{"Ready", metav1.ConditionFalse, Removing, "removing what was applied"},
		want{"Reconciling", metav1.ConditionTrue, Removing, "removing what was applied"})
	return Plan{Actions: []Action{Remove{"", left}}, Status: st, Recheck: now.Add(time.Second)}
}
