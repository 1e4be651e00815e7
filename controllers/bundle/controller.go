// Package bundle keeps what Bundles name applied: it fetches and builds commits that it doesn't trust, and applies
// them with the rights of the account that the Bundle names, never with its own.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/note"
	"virtstack.io/virtstack/kube/release"
)

// fieldManager owns what Bundles apply, and their status. holder owns a Bundle's finalizer: of a Bundle that another has
// applied, fieldManager's next apply of metadata would drop the spec.
const (
	fieldManager = "virt-bundles"
	holder       = "virt-bundles-finalizer"
)

// Controller brings about what a Bundle asks for.
type Controller struct {
	client client.Client
	live   client.Reader // without a cache
	status apply.Applier
	events events.EventRecorder
	as     func(namespace, account string) (client.Client, error)
	builds *builds
	// healthy are the builds that may be gone back to.
	healthy *builds
	// anywhere lets a Bundle name a source of another namespace.
	anywhere bool
	// bases are the repositories whose directories Bundles may have as bases.
	bases []string
}

// Round does one step.
func (c *Controller) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	b := &v1alpha1.Bundle{}
	if err := c.client.Get(ctx, key, b); err != nil {
		c.forget(key)
		return time.Time{}, client.IgnoreNotFound(err)
	}
	if b.Spec.Suspend && b.DeletionTimestamp == nil {
		return time.Time{}, c.say(ctx, b, plan.Suspend(now, b))
	}
	r, err := c.observe(ctx, b, now)
	if err != nil {
		return time.Time{}, err
	}
	p := plan.For(now, r.seen)
	if failed := c.act(ctx, r, p.Actions); apierrors.IsConflict(failed) {
		c.builds.forget(b)
		return time.Time{}, failed
	} else if failed != nil {
		p = plan.Failed(now, r.seen, r.explain(failed))
	} else if does[plan.Release](p.Actions) {
		c.forget(key)
		return time.Time{}, nil
	}
	c.settle(now, r, p)
	c.remember(r, p.Status)
	p.Status = plan.Receiving(now, b, p.Status, r.deaf)
	if err := c.say(ctx, b, p.Status); err != nil {
		return time.Time{}, err
	}
	return p.Recheck, nil
}

func (c *Controller) forget(key types.NamespacedName) {
	c.builds.drop(key)
	c.healthy.drop(key)
}

// say writes the status and makes an event of what is new in it.
func (c *Controller) say(ctx context.Context, b *v1alpha1.Bundle, next v1alpha1.BundleStatus) error {
	c.tell(b, next)
	c.tellBack(b, next.RolledBack)
	if err := c.status.Status(ctx, b, &next); err != nil {
		return fmt.Errorf("writing status of Bundle %s/%s: %w", b.Namespace, b.Name, err)
	}
	return nil
}

// does tells whether one of the actions is of a kind.
func does[A plan.Action](actions []plan.Action) bool {
	return slices.ContainsFunc(actions, func(a plan.Action) bool { _, ok := a.(A); return ok })
}

func (c *Controller) act(ctx context.Context, r *round, actions []plan.Action) error {
	ctx, cancel := context.WithTimeout(ctx, plan.Timeout(r.bundle))
	defer cancel()
	for _, a := range actions {
		if err := c.do(ctx, r, a); err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) do(ctx context.Context, r *round, a plan.Action) error {
	switch a := a.(type) {
	case plan.Hold:
		own := apply.Applier{Client: c.client, Manager: holder}
		return own.Metadata(ctx, r.bundle, apply.Metadata{Finalizers: []string{v1alpha1.BundleFinalizer}})
	case plan.Release:
		if len(a.Behind) > 0 {
			c.events.Eventf(r.bundle, nil, corev1.EventTypeWarning, "LeftBehind", "Remove", "could not be removed in time: %s", note.Of(plan.Remove{Objects: a.Behind}))
		}
		if len(a.Kept) > 0 {
			c.events.Eventf(r.bundle, nil, corev1.EventTypeWarning, "Kept", "Remove", "kept, as machines are protected: %s", note.Of(plan.Remove{Objects: a.Kept}))
		}
		return client.IgnoreNotFound(c.status.Release(ctx, r.bundle, v1alpha1.BundleFinalizer))
	case plan.Apply:
		err := r.releaser.Apply(ctx, r.changes)
		c.tellTaken(r)
		if err != nil {
			return err
		}
		c.events.Eventf(r.bundle, nil, corev1.EventTypeNormal, "Applied", "Apply", "%s", note.Of(a))
	case plan.Remove:
		refs, err := parse(a.Objects)
		if err != nil {
			return err
		}
		if _, err := r.releaser.Remove(ctx, lastFirst(refs)); err != nil {
			return &removal{err}
		}
		c.events.Eventf(r.bundle, nil, corev1.EventTypeNormal, "Removed", "Remove", "%s", note.Of(a))
	}
	return nil
}

// tellTaken makes an event of what was there before the Bundle, and nobody's, and is the Bundle's now.
func (c *Controller) tellTaken(r *round) {
	var all []string
	for _, ref := range r.releaser.TakenOver() {
		all = append(all, ref.String())
	}
	if len(all) > 0 {
		c.events.Eventf(r.bundle, nil, corev1.EventTypeNormal, "TakenOver", "Apply", "%s", note.Of("there before, and no Bundle's or other Git tool's: "+strings.Join(all, ", ")))
	}
}

// removal marks an error of a removal.
type removal struct{ error }

func (r *removal) Unwrap() error { return r.error }

// explain says what a failed look at the objects, or a failed action, means for the Bundle.
func (r *round) explain(err error) plan.Failure {
	var refused release.Refusals
	var unanswered *release.Unanswered
	var removing *removal
	switch {
	case errors.As(err, &removing):
		return plan.Failure{Reason: plan.PruneFailed, Message: err.Error()}
	case errors.As(err, &refused):
		return r.refusal(refused)
	case errors.As(err, &unanswered):
		why := answer(unanswered.Object, unanswered.Err)
		return plan.Failure{Reason: plan.ApplyFailed, Message: r.seen.Revision + ": " + r.named(unanswered.Object) + ": " + why + "; trying again"}
	}
	return plan.Failure{Reason: plan.ApplyFailed, Message: r.seen.Revision + ": " + err.Error()}
}

// tell makes a failure an event, once: conditions repeat, events don't.
func (c *Controller) tell(b *v1alpha1.Bundle, next v1alpha1.BundleStatus) {
	for _, n := range next.Conditions {
		if n.Type != "Ready" || n.Status == "Unknown" {
			continue
		}
		for _, o := range b.Status.Conditions {
			if o.Type == n.Type && o.Status == n.Status && o.Message == n.Message {
				return
			}
		}
		kind := corev1.EventTypeNormal
		if n.Status == "False" {
			kind = corev1.EventTypeWarning
		}
		c.events.Eventf(b, nil, kind, n.Reason, "Reconcile", "%s", note.Of(n.Message))
	}
}

// tellBack makes an event of going back, and of the end of that.
func (c *Controller) tellBack(b *v1alpha1.Bundle, next *v1alpha1.RolledBack) {
	before := b.Status.RolledBack
	switch {
	case next != nil && (before == nil || before.From != next.From || before.Generation != next.Generation):
		c.events.Eventf(b, nil, corev1.EventTypeWarning, plan.RolledBack, "Rollback", "%s", note.Of(fmt.Sprintf("going back from %s to %s: %s", next.From, next.To, next.Message)))
	case next == nil && before != nil:
		c.events.Eventf(b, nil, corev1.EventTypeNormal, "RollbackEnded", "Rollback", "%s", note.Of("the source has another revision than "+before.From+", or the Bundle another spec: "+before.To+" is no longer kept"))
	}
}
