package loop

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

type fixed struct {
	recheck time.Time
	err     error
}

func (f fixed) Round(context.Context, types.NamespacedName, time.Time) (time.Time, error) {
	return f.recheck, f.err
}

func TestWhatARoundSaysIsDone(t *testing.T) {
	now := time.Unix(1000, 0)
	broken := errors.New("broken")
	conflict := apierrors.NewConflict(schema.GroupResource{}, "web", errors.New("someone wrote"))
	for name, tc := range map[string]struct {
		round fixed
		after time.Duration
		err   error
	}{
		"nothing to wait for": {fixed{}, 0, nil},
		"look again":          {fixed{recheck: now.Add(time.Minute)}, time.Minute, nil},
		"it is past already":  {fixed{recheck: now.Add(-time.Minute)}, time.Millisecond, nil},
		"error":               {fixed{recheck: now.Add(time.Minute), err: broken}, 0, broken},
		"conflict":            {fixed{err: errors.Join(conflict)}, afterConflict, nil},
	} {
		got, err := reconciler{tc.round, func() time.Time { return now }}.Reconcile(t.Context(), ctrl.Request{})
		if got.RequeueAfter != tc.after || !errors.Is(err, tc.err) {
			t.Errorf("%s: got %v and %v, want %v and %v", name, got.RequeueAfter, err, tc.after, tc.err)
		}
	}
}
