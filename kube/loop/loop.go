// Package loop drives the rounds of a controller: observe, plan, act. It is the one place that reads the clock.
package loop

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Rounder does one round for one object. It returns when to look again even if nothing changes (zero: never) and an
// error to back off on.
type Rounder interface {
	Round(ctx context.Context, key types.NamespacedName, now time.Time) (recheck time.Time, err error)
}

// Reconciler makes a Rounder a controller-runtime Reconciler. Errors are logged and backed off by controller-runtime.
func Reconciler(r Rounder) reconcile.Reconciler { return reconciler{r, time.Now} }

type reconciler struct {
	rounder Rounder
	now     func() time.Time
}

func (r reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	now := r.now()
	recheck, err := r.rounder.Round(ctx, req.NamespacedName, now)
	if err != nil || recheck.IsZero() {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: max(recheck.Sub(now), time.Millisecond)}, nil
}
