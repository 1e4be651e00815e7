package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/object"
	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/controllers/bundle/receiver"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/kube/release"
	"virtstack.io/virtstack/machine/names"
)

// round is what one round has seen, and what is behind it.
type round struct {
	bundle    *v1alpha1.Bundle
	seen      plan.Seen
	client    client.Client // with the rights of the Bundle's account
	releaser  *release.Releaser
	objects   []build.Object
	with      string // a digest of the variables that the objects were built with
	changes   release.Changes
	anywhere  bool     // the source may be in another namespace
	bases     []string // as the Controller's
	deaf      error    // why no webhook is taken
	powerless bool     // the account has lost the rights to what was applied
}

// observe takes no longer than the Bundle's timeout, which leaves time to act on it and to say what it came to.
func (c *Controller) observe(ctx context.Context, b *v1alpha1.Bundle, now time.Time) (*round, error) {
	ctx, cancel := context.WithTimeout(ctx, plan.Timeout(b))
	defer cancel()
	account := accountOf(b)
	as, err := c.as(b.Namespace, account)
	if err != nil {
		return nil, fmt.Errorf("acting as account %s/%s: %w", b.Namespace, account, err)
	}
	r := &round{bundle: b, seen: plan.Seen{Bundle: b}, client: as, releaser: release.New(as, fieldManager, owner(b)), anywhere: c.anywhere, bases: c.bases}
	r.releaser.Holds, r.releaser.Yields = c.holds, true
	if b.DeletionTimestamp != nil {
		return r, errors.Join(r.observeLeft(ctx), c.leaveToNamespace(ctx, r))
	}
	if !slices.Contains(b.Finalizers, v1alpha1.BundleFinalizer) {
		return r, nil // nothing else is done before it is held
	}
	if b.Spec.Receiver != nil {
		_, r.deaf = receiver.Read(ctx, as, b)
	}
	if len(b.Spec.DependsOn) > 0 {
		var all v1alpha1.BundleList
		if err := c.client.List(ctx, &all, client.InNamespace(b.Namespace)); err != nil {
			return nil, fmt.Errorf("listing dependencies: %w", err)
		}
		if r.seen.Failure = plan.Depends(b, all.Items); r.seen.Failure != nil {
			return r, nil
		}
	}
	if r.releaser.Judges, r.seen.Failure = judges(b); r.seen.Failure != nil {
		return r, nil
	}
	if err := c.built(ctx, r); err != nil {
		r.seen.Failure = cause(r, err)
		return r, nil
	}
	if err := c.checked(ctx, r, now); err != nil {
		f := r.explain(err)
		r.seen.Failure = &f
		return r, nil
	}
	return r, r.observeObjects(ctx)
}

func accountOf(b *v1alpha1.Bundle) string {
	if b.Spec.ServiceAccountName != "" {
		return b.Spec.ServiceAccountName
	}
	return v1alpha1.DefaultBundleServiceAccount
}

// checked fills in the changes; rounds on the way of one revision share a check.
func (c *Controller) checked(ctx context.Context, r *round, now time.Time) error {
	last, ok := c.builds.changes(r, now)
	if ok {
		r.changes = last.Of(unwrap(r.objects))
		return nil
	}
	found, err := r.releaser.Check(ctx, unwrap(r.objects))
	if err != nil {
		return err
	}
	r.changes = found
	c.builds.remember(r, now, found)
	return nil
}

// settle forgets a check with which nothing more is to be done. What was applied whole needs no other: it is as it
// should be.
func (c *Controller) settle(now time.Time, r *round, p plan.Plan) {
	switch {
	case !p.Underway():
		c.builds.forget(r.bundle)
	case does[plan.Apply](p.Actions):
		c.builds.remember(r, now, release.Changes{})
	}
}

func owner(b *v1alpha1.Bundle) release.Owner {
	return release.Owner{Group: release.BundleGroup, Namespace: b.Namespace, Name: names.LabelValue(b.Name)}
}

// holds tells whether the Bundle of an owner's labels is there and has the object in its inventory: each Bundle writes
// down what it applies before it does.
func (c *Controller) holds(ctx context.Context, other release.Owner, ref release.Ref) (bool, error) {
	if other.Group != release.BundleGroup {
		return true, nil
	}
	var all v1alpha1.BundleList
	if err := c.live.List(ctx, &all, client.InNamespace(other.Namespace)); err != nil {
		return false, err
	}
	for i := range all.Items {
		b := &all.Items[i]
		if owner(b) == other && b.Status.Inventory != nil {
			return slices.ContainsFunc(b.Status.Inventory.Entries, func(e v1alpha1.ResourceRef) bool { return e.ID == ref.ID() }), nil
		}
	}
	return false, nil
}

func (r *round) observeObjects(ctx context.Context) error {
	for _, ref := range r.changes.Refs() {
		r.seen.Changes = append(r.seen.Changes, ref.String())
	}
	if !r.changes.Empty() {
		return nil
	}
	unhealthy := r.observeHealth(ctx)
	if err := r.observeLeft(ctx); err != nil || len(unhealthy) == 0 {
		return err
	}
	left, err := parse(r.seen.Left)
	if err != nil {
		return err
	}
	way, err := r.inTheWay(ctx, left, unhealthy)
	r.seen.InTheWay = entries(way)
	return err
}

// observeLeft finds what is left over. What can't be looked at counts as left, until the deadline of a removal.
func (r *round) observeLeft(ctx context.Context) error {
	if r.bundle.Status.Inventory == nil || !plan.Prunes(r.bundle) {
		return nil
	}
	refs, err := parse(r.bundle.Status.Inventory.Entries)
	if err != nil {
		return err
	}
	left := release.Without(refs, release.Refs(unwrap(r.objects)))
	present, protected, err := r.releaser.Present(ctx, left)
	if err == nil {
		left = present
	}
	r.seen.Left, r.seen.Protected, r.powerless = entries(left), entries(protected), apierrors.IsForbidden(err)
	return nil
}

// leaveToNamespace takes what is in the Bundle's own namespace off the list when that namespace is going: Kubernetes
// removes all of it, the account's rights often first, and the finalizer of a Bundle must not keep it.
func (c *Controller) leaveToNamespace(ctx context.Context, r *round) error {
	if !r.powerless {
		return nil
	}
	var ns corev1.Namespace
	if err := c.live.Get(ctx, client.ObjectKey{Name: r.bundle.Namespace}, &ns); err != nil {
		return fmt.Errorf("reading namespace %s: %w", r.bundle.Namespace, err)
	}
	if ns.DeletionTimestamp == nil {
		return nil
	}
	refs, err := parse(r.seen.Left)
	if err != nil {
		return err
	}
	elsewhere := slices.DeleteFunc(refs, func(ref release.Ref) bool { return ref.Namespace == ns.Name })
	r.seen.Left = entries(elsewhere)
	return nil
}

// refusal names file, object and commit of everything that was refused.
func (r *round) refusal(refused release.Refusals) plan.Failure {
	var all []string
	for _, one := range refused {
		all = append(all, r.named(one.Object)+": "+answer(one.Object, one.Err))
	}
	return plan.Failure{
		Reason: plan.Refused, Final: refused.Final(),
		Message: fmt.Sprintf("%s: refused, nothing was applied: %s", r.seen.Revision, strings.Join(all, "; ")),
	}
}

// answer is what the API server said of an object. Of a Secret it is left out: it may quote it.
func answer(to release.Ref, err error) string {
	if to.GroupKind.Kind != "Secret" || to.GroupKind.Group != "" {
		return err.Error()
	}
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "no answer of the API server"
}

func (r *round) named(ref release.Ref) string {
	for _, o := range r.objects {
		if release.RefOf(o.Unstructured).ID() == ref.ID() {
			return o.String()
		}
	}
	return ref.String()
}

func parse(list []v1alpha1.ResourceRef) ([]release.Ref, error) {
	var refs []release.Ref
	for _, e := range list {
		ref, err := release.ParseRef(e.ID, e.Version)
		if err != nil {
			return nil, fmt.Errorf("reading the inventory: %w", err)
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

func entries(refs []release.Ref) []v1alpha1.ResourceRef {
	var list []v1alpha1.ResourceRef
	for _, r := range release.Sorted(refs) {
		list = append(list, v1alpha1.ResourceRef{ID: r.ID(), Version: r.Version})
	}
	return list
}

// lastFirst orders refs for removal: the reverse of the order of applying.
func lastFirst(refs []release.Ref) []release.Ref {
	order := func(i, j int) bool {
		return ssa.SortableMetas([]object.ObjMetadata{refs[j].ObjMetadata, refs[i].ObjMetadata}).Less(0, 1)
	}
	sort.SliceStable(refs, order)
	return refs
}
