// Package operator installs, upgrades and removes the components of virtstack for the one KubeVirt of a cluster, and
// issues their certificates.
package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/operator/plan"
	"virtstack.io/virtstack/controllers/operator/render"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/note"
	"virtstack.io/virtstack/kube/release"
)

const fieldManager = "virt-operator"

// Controller brings about what a KubeVirt asks for.
type Controller struct {
	client client.Client // reads KubeVirts from the cache
	live   client.Reader
	status apply.Applier
	events events.EventRecorder
	files  fs.FS
	images render.Images
	// content is what was last taken from Git in the place of files. One round runs at a time.
	content *content
}

// Round does one step of a roll-out or a removal.
func (c *Controller) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	r, err := c.observe(ctx, key, now)
	if err != nil || r == nil {
		return time.Time{}, err
	}
	p := plan.For(now, r.seen)
	failed := c.act(ctx, r, p.Actions)
	if apierrors.IsConflict(failed) {
		return time.Time{}, failed // what was seen is no ground for a status either
	}
	var refused release.Refusals
	if errors.As(failed, &refused) {
		p = plan.Refused(now, r.seen, failed)
	} else if failed != nil {
		p.Status = plan.Unanswered(now, r.seen, failed.Error()).Status
	}
	if released(p.Actions) && failed == nil {
		return time.Time{}, nil
	}
	if err := c.status.Status(ctx, r.kv, &p.Status); err != nil {
		return time.Time{}, errors.Join(failed, fmt.Errorf("writing status of KubeVirt %s: %w", key, err))
	}
	return p.Recheck, failed
}

func released(actions []plan.Action) bool {
	for _, a := range actions {
		if _, ok := a.(plan.Release); ok {
			return true
		}
	}
	return false
}

func (c *Controller) releaser(kv *v1.KubeVirt) *release.Releaser {
	return release.New(c.client, fieldManager, owner(kv))
}

func owner(kv *v1.KubeVirt) release.Owner {
	return release.Owner{Group: release.OperatorGroup, Namespace: kv.Namespace, Name: kv.Name}
}

func (c *Controller) act(ctx context.Context, r *round, actions []plan.Action) error {
	for _, a := range actions {
		if err := c.do(ctx, r, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		if why := reason(a); why != "" {
			c.events.Eventf(r.kv, nil, corev1.EventTypeNormal, why, "RollOut", "%s", note.Of(a))
		}
	}
	return nil
}

// reason is that of the event of an action, "" for one that nobody needs to hear of.
func reason(a plan.Action) string {
	switch a.(type) {
	case plan.Apply, plan.Register:
		return "Applying"
	case plan.Prune, plan.Remove, plan.Withdraw, plan.RemoveWorkloads, plan.UnmarkNodes, plan.RemoveRecords:
		return "Removing"
	}
	return ""
}

func (c *Controller) do(ctx context.Context, r *round, a plan.Action) error {
	switch a := a.(type) {
	case plan.Hold:
		return c.status.Metadata(ctx, r.kv, apply.Metadata{Finalizers: []string{plan.Finalizer}})
	case plan.Release:
		return client.IgnoreNotFound(c.status.Release(ctx, r.kv, plan.Finalizer))
	case plan.Record:
		return c.record(ctx, append(r.wanted, r.installed...))
	case plan.Apply:
		return c.releaser(r.kv).Apply(ctx, r.changes[a.Stage])
	case plan.Prune:
		left, err := c.releaser(r.kv).Remove(ctx, lastFirst(release.Without(r.installed, r.wanted)))
		return errors.Join(err, c.record(ctx, append(left, r.wanted...)))
	case plan.Remove:
		_, err := c.releaser(r.kv).Remove(ctx, r.left[a.Stage])
		return err
	case plan.Withdraw:
		return c.withdraw(ctx, r, a.Objects)
	case plan.Register:
		return c.register(ctx, r)
	case plan.RemoveWorkloads:
		return c.removeWorkloads(ctx)
	case plan.UnmarkNodes:
		return c.unmark(ctx, r.marked)
	case plan.RemoveRecords:
		return c.removeRecords(ctx)
	}
	return fmt.Errorf("no such action")
}
