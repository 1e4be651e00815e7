// Package loop drives the rounds of a controller: observe, plan, act. It is the one place that reads the clock.
package loop

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Rounder does one round for one object. It returns when to look again even if nothing changes (zero: never) and an
// error to back off on.
type Rounder interface {
	Round(ctx context.Context, key types.NamespacedName, now time.Time) (recheck time.Time, err error)
}

// When to look again at an object that someone else wrote.
const (
	// afterConflict is for a change that the cache shows soon.
	afterConflict = 200 * time.Millisecond
	// afterDispute is for a field that another manager has and may keep.
	afterDispute = 10 * time.Second
)

// Reconciler makes a Rounder a controller-runtime Reconciler. Errors are logged and backed off by controller-runtime,
// but for conflicts: they say that someone else has written, and are looked at again.
func Reconciler(r Rounder) reconcile.Reconciler { return reconciler{r, time.Now} }

type reconciler struct {
	rounder Rounder
	now     func() time.Time
}

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.now()
	recheck, err := r.rounder.Round(ctx, req.NamespacedName, now)
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		ctrl.LoggerFrom(ctx).Info("leaving fields to their manager", "because", err.Error())
		return ctrl.Result{RequeueAfter: afterDispute}, nil
	}
	if apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(1).Info("looking again", "because", err.Error())
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	if err != nil || recheck.IsZero() {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(recheck.Sub(now), time.Millisecond)}, nil
}
