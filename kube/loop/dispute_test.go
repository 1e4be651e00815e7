package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

type disputed struct{ Rounder }

func (disputed) Round(context.Context, types.NamespacedName, time.Time) (time.Time, error) {
	causes := []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".status.phase"}}
	return time.Time{}, errors.Join(apierrors.NewApplyConflict(causes, "someone has it"))
}

func TestAFieldThatSomeoneKeepsIsNoHotLoop(t *testing.T) {
	got, err := Reconciler(disputed{}).Reconcile(t.Context(), ctrl.Request{})
	if got.RequeueAfter != afterDispute || err != nil {
		t.Errorf("got %v and %v, want %v", got.RequeueAfter, err, afterDispute)
	}
}
