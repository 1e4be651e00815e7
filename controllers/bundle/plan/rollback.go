package plan

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

const (
	// RolledBack is the reason of a Bundle that has gone back, and the type of the condition that says so.
	RolledBack = "RolledBack"
	// RollbackFailed is that of one that could not.
	RollbackFailed = "RollbackFailed"
)

// Stays tells whether a Bundle has gone back from this revision and has no reason to try it again: neither has its spec
// changed nor its source.
func Stays(b *v1alpha1.Bundle, revision string) bool {
	r := b.Status.RolledBack
	return rollsBack(b) && r != nil && r.From == revision && r.Generation == b.Generation
}

func rollsBack(b *v1alpha1.Bundle) bool { return b.Spec.Rollback != nil && b.Spec.Rollback.OnFailure }

// judges tells whether the health of anything is looked at.
func judges(b *v1alpha1.Bundle) bool { return Waits(b) || len(b.Spec.HealthChecks) > 0 }

// back is what a revision that has failed is gone back to; nil: to nothing. One that was healthy before has not failed
// by its own fault, and is not left.
func back(now time.Time, s Seen, f Failure) *v1alpha1.RolledBack {
	b := s.Bundle
	to := b.Status.LastHealthyRevision
	if !rollsBack(b) || s.Back || to == "" || to == s.Revision {
		return nil
	}
	return &v1alpha1.RolledBack{
		From: s.Revision, To: to, Generation: b.Generation, Reason: f.Reason, Message: cut(f.Message), Time: metav1.NewTime(now.Truncate(time.Second)),
	}
}

// goingBack is the failure of going back.
func goingBack(b *v1alpha1.Bundle, f Failure) Failure {
	r := b.Status.RolledBack
	return Failure{Reason: RollbackFailed, Final: f.Final, Message: fmt.Sprintf("going back from %s to %s, %s: %s; what is applied stays", r.From, r.To, f.Reason, f.Message)}
}

// marked adds what says that source and cluster differ.
func marked(now time.Time, b *v1alpha1.Bundle, st v1alpha1.BundleStatus) v1alpha1.BundleStatus {
	r := st.RolledBack
	if r == nil {
		return st
	}
	kept := st.Conditions[:0:0]
	for _, c := range st.Conditions {
		if c.Type != RolledBack {
			kept = append(kept, c)
		}
	}
	st.Conditions = append(kept, conditions(now, b, want{RolledBack, metav1.ConditionTrue, r.Reason, differ(r)})...)
	return st
}

func differ(r *v1alpha1.RolledBack) string {
	return fmt.Sprintf("the source has %s, the cluster %s, until the source has another revision or the Bundle another spec: %s", r.From, r.To, r.Message)
}
