package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/operator/plan"
	"virtstack.io/virtstack/controllers/operator/render"
	"virtstack.io/virtstack/kube/release"
	"virtstack.io/virtstack/machine/names"
	product "virtstack.io/virtstack/machine/release"
)

// round is what one round has seen, and the objects behind it.
type round struct {
	kv        *v1.KubeVirt
	seen      plan.Seen
	wanted    []release.Ref
	installed []release.Ref
	stages    map[plan.Stage][]*unstructured.Unstructured
	changes   map[plan.Stage]release.Changes
	left      map[plan.Stage][]release.Ref
	marked    []*corev1.Node
}

func (c *Controller) observe(ctx context.Context, key types.NamespacedName, now time.Time) (*round, error) {
	kv := &v1.KubeVirt{}
	if err := c.client.Get(ctx, key, kv); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	r := &round{kv: kv, seen: plan.Seen{KubeVirt: kv}, changes: map[plan.Stage]release.Changes{}}
	var err error
	if r.seen.First, err = c.first(ctx, kv); err != nil {
		return nil, err
	}
	if r.installed, err = c.inventory(ctx); err != nil {
		return nil, err
	}
	if kv.DeletionTimestamp != nil {
		return r, c.observeRemoval(ctx, r)
	}
	if r.seen.Foreign, err = c.foreign(ctx, kv); err != nil {
		return nil, err
	}
	if r.seen.Kinds, err = c.kinds(ctx); err != nil {
		return nil, err
	}
	if err := c.observeTarget(ctx, r, now); err != nil {
		return nil, err
	}
	if r.seen.Unanswered != "" || r.seen.Foreign != "" || r.seen.First != "" || r.seen.Build != nil || len(r.seen.Kinds) > 0 || !r.seen.Certified || !r.seen.Recorded {
		return r, nil
	}
	if err := c.observeStages(ctx, r); err != nil {
		return nil, err
	}
	return r, c.observeRegistrations(ctx, r)
}

// first returns another KubeVirt that was there before this one. One elsewhere is none: it is refused anyway.
func (c *Controller) first(ctx context.Context, kv *v1.KubeVirt) (string, error) {
	var all v1.KubeVirtList
	if err := c.client.List(ctx, &all, client.InNamespace(names.Namespace)); err != nil {
		return "", fmt.Errorf("listing KubeVirts: %w", err)
	}
	for _, other := range all.Items {
		a, b := other.CreationTimestamp, kv.CreationTimestamp
		if other.UID != kv.UID && (a.Before(&b) || a.Equal(&b) && other.UID < kv.UID || kv.Namespace != names.Namespace) {
			return other.Namespace + "/" + other.Name, nil
		}
	}
	return "", nil
}

func (c *Controller) observeTarget(ctx context.Context, r *round, now time.Time) error {
	taken, err := c.components(ctx, r.kv, now)
	if errors.Is(err, errContent) {
		r.seen.Target, r.seen.Build = last(r.kv), err
		r.seen.Target.Version = product.Version
		return nil
	}
	if err != nil {
		r.seen.Target, r.seen.Unanswered = last(r.kv), err.Error()
		return nil
	}
	from := render.Settings{}
	if taken != nil {
		from.Manifests, r.seen.Look = taken.manifests, taken.every
		r.seen.Stale, r.seen.Rejected = taken.stale, taken.rejected
	}
	nodes, err := count(ctx, c.live, nodes())
	if err != nil {
		return fmt.Errorf("counting nodes: %w", err)
	}
	trusted, err := c.trusted(ctx)
	if err != nil {
		return err
	}
	r.seen.Certified = len(trusted) > 0
	from.Images, from.Nodes, from.CABundle, from.Labels = c.images, nodes, trusted, owner(r.kv).Labels()
	b, err := render.Components(c.files, r.kv, from)
	r.seen.Build = err
	r.seen.Target = plan.Target{Version: product.Version, Registry: b.Registry, ID: b.ID, Config: c.config(taken)}
	if err != nil {
		r.seen.Target = last(r.kv)
		r.seen.Target.Version = product.Version
		return nil
	}
	r.wanted = release.Refs(b.Objects)
	r.seen.Recorded = len(release.Without(r.wanted, r.installed)) == 0
	r.seen.Orphans = shown(release.Without(r.installed, r.wanted))
	r.stages = map[plan.Stage][]*unstructured.Unstructured{}
	for _, o := range b.Objects {
		s := plan.StageOf(o.GetKind(), o.GetName())
		r.stages[s] = append(r.stages[s], o)
	}
	return nil
}

func (c *Controller) config(taken *content) string {
	from := ""
	if taken != nil {
		from = fmt.Sprintf(`,"components":%q`, taken.revision)
	}
	return fmt.Sprintf(`{"image":%q,"launcherImage":%q%s}`, c.images.Component, c.images.Launcher, from)
}

// last is the target of the last round.
func last(kv *v1.KubeVirt) plan.Target {
	st := kv.Status
	return plan.Target{Version: st.TargetKubeVirtVersion, Registry: st.TargetKubeVirtRegistry, ID: st.TargetDeploymentID, Config: st.TargetDeploymentConfig}
}

// trusted reads the CA bundle, "" before there is one.
func (c *Controller) trusted(ctx context.Context) ([]byte, error) {
	var m corev1.ConfigMap
	err := c.live.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: names.CAConfigMap}, &m)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading the CA bundle: %w", err)
	}
	return []byte(m.Data[names.CABundleKey]), nil
}

func (c *Controller) observeRemoval(ctx context.Context, r *round) error {
	var err error
	if r.seen.Workloads, err = workloads(ctx, c.live); err != nil {
		return err
	}
	present, _, err := c.releaser(r.kv).Present(ctx, r.installed)
	if err != nil {
		return err
	}
	r.left, r.seen.Left = map[plan.Stage][]release.Ref{}, map[plan.Stage][]string{}
	for _, ref := range present {
		s := plan.StageOf(ref.GroupKind.Kind, ref.Name)
		r.left[s] = append(r.left[s], ref)
		r.seen.Left[s] = append(r.seen.Left[s], ref.String())
	}
	r.seen.Target.Version = product.Version
	if len(present) > 0 {
		return nil
	}
	r.marked, err = marked(ctx, c.live)
	for _, n := range r.marked {
		r.seen.Marked = append(r.seen.Marked, n.Name)
	}
	return err
}

func shown(refs []release.Ref) []string {
	var all []string
	for _, r := range refs {
		all = append(all, r.String())
	}
	return all
}

// lastFirst orders refs for removal.
func lastFirst(refs []release.Ref) []release.Ref {
	stage := func(r release.Ref) plan.Stage { return plan.StageOf(r.GroupKind.Kind, r.Name) }
	slices.SortStableFunc(refs, func(a, b release.Ref) int { return int(stage(b) - stage(a)) })
	return refs
}
