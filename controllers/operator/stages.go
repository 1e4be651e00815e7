package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/operator/plan"
	"virtstack.io/virtstack/controllers/operator/render"
	"virtstack.io/virtstack/kube/release"
)

// observeStages looks at one stage after the other, up to the first that is not ready.
func (c *Controller) observeStages(ctx context.Context, r *round) error {
	to := c.releaser(r.kv)
	for _, stage := range plan.Stages() {
		s := plan.StageSeen{Stage: stage}
		objects, err := c.wanted(ctx, r, stage)
		if err != nil {
			return err
		}
		changes, err := to.Check(ctx, objects)
		var refused release.Refusals
		switch {
		case errors.As(err, &refused):
			s.Refused = refused.Error()
		case err != nil:
			s.Unanswered = err.Error()
		}
		r.changes[stage] = changes
		s.Changes = shown(changes.Refs())
		if err == nil && len(s.Changes) == 0 {
			if s.Waiting, s.Failed, err = c.health(ctx, to, objects); err != nil {
				return err
			}
		}
		r.seen.Stages = append(r.seen.Stages, s)
		if !s.Ready() {
			return nil
		}
	}
	return nil
}

// wanted returns the objects that a stage brings about.
func (c *Controller) wanted(ctx context.Context, r *round, stage plan.Stage) ([]*unstructured.Unstructured, error) {
	switch stage {
	case plan.Configuration:
		return c.widened(ctx, r.stages[stage])
	case plan.Withdrawals:
		return c.withdrawn(ctx, r)
	case plan.Rights:
		return slices.DeleteFunc(slices.Clone(r.stages[plan.Configuration]), func(o *unstructured.Unstructured) bool { return !render.IsRole(o) }), nil
	}
	return r.stages[stage], nil
}

// widened are objects whose roles keep what they grant now.
func (c *Controller) widened(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	all := slices.Clone(objects)
	for i, o := range all {
		if !render.IsRole(o) {
			continue
		}
		live, err := c.read(ctx, release.RefOf(o))
		if err != nil {
			return nil, err
		}
		all[i] = render.Widened(o, live)
	}
	return all, nil
}

// withdrawn are the webhook configurations that have to lose a webhook before another virt-api is rolled out.
func (c *Controller) withdrawn(ctx context.Context, r *round) ([]*unstructured.Unstructured, error) {
	wanted := map[string]*unstructured.Unstructured{}
	for _, o := range r.stages[plan.Registrations] {
		wanted[release.RefOf(o).ID()] = o
	}
	var all []*unstructured.Unstructured
	for _, ref := range r.installed {
		if !render.IsWebhooks(ref.GroupKind.Kind) {
			continue
		}
		live, err := c.read(ctx, ref)
		if err != nil {
			return nil, err
		}
		if live == nil || live.GetDeletionTimestamp() != nil {
			continue
		}
		if less := render.Withdrawn(wanted[ref.ID()], live, c.status.Keys(live, "labels")); less != nil {
			all = append(all, less)
		}
	}
	return all, nil
}

// read returns an object as the API server has it, nil if it has none.
func (c *Controller) read(ctx context.Context, ref release.Ref) (*unstructured.Unstructured, error) {
	live := ref.Empty()
	err := c.live.Get(ctx, client.ObjectKeyFromObject(live), live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", ref, err)
	}
	return live, nil
}

// gates are the objects whose health the next stage waits for; the others have none.
func gates(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	kinds := []string{"Deployment", "DaemonSet", "APIService"}
	return slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool {
		return !slices.Contains(kinds, o.GetKind())
	})
}

// health says what objects wait for, the trouble of their Pods with it, and whether that will last.
func (c *Controller) health(ctx context.Context, to *release.Releaser, objects []*unstructured.Unstructured) (waiting string, failed bool, err error) {
	all := gates(objects)
	found := to.Health(ctx, release.Refs(all))
	said := []string{release.List(found)}
	for _, o := range all {
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels")
		ill := func(h release.Health) bool { return h.Object.ID() == release.RefOf(o).ID() }
		if len(selector) == 0 || !slices.ContainsFunc(found, ill) {
			continue
		}
		var pods corev1.PodList
		if err := c.live.List(ctx, &pods, client.InNamespace(o.GetNamespace()), client.MatchingLabels(selector)); err != nil {
			return "", false, fmt.Errorf("listing the Pods of %s: %w", release.RefOf(o), err)
		}
		why, lasts := plan.Trouble(pods.Items)
		if why != "" {
			said = append(said, why)
		}
		failed = failed || lasts
	}
	return strings.Join(said, "; "), failed || slices.ContainsFunc(found, func(h release.Health) bool { return h.Failed }), nil
}
