// Package loop drives the rounds of a controller: observe, plan, act. It is the one place that reads the clock.
package loop

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Rounder does one round for one object. It returns when to look again even if nothing changes (zero: never) and an
// error to back off on.
type Rounder interface {
	Round(ctx context.Context, key types.NamespacedName, now time.Time) (recheck time.Time, err error)
}

// afterConflict is when to look again at an object that someone else wrote: the cache shows it soon.
const afterConflict = 200 * time.Millisecond

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
	if apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(1).Info("looking again", "because", err.Error())
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	if err != nil || recheck.IsZero() {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(recheck.Sub(now), time.Millisecond)}, nil
}
