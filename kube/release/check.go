package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"golang.org/x/sync/errgroup"
)

// parallel is how many objects are checked at a time.
const parallel = 4

// Refusal is an object that the API server or another owner does not let be applied.
type Refusal struct {
	Object Ref
	Err    error
}

func (r Refusal) Error() string { return r.Object.String() + ": " + r.Err.Error() }

// Unwrap returns the API server's answer.
func (r Refusal) Unwrap() error { return r.Err }

// Refusals are all refused objects of one release; it is an error.
type Refusals []Refusal

func (r Refusals) Error() string {
	var all []string
	for _, one := range r {
		all = append(all, one.Error())
	}
	return strings.Join(all, "; ")
}

// Unwrap returns each.
func (r Refusals) Unwrap() []error {
	var all []error
	for _, one := range r {
		all = append(all, one)
	}
	return all
}

// Final reports whether every further try with the same objects ends the same: they are invalid as they are.
func (r Refusals) Final() bool {
	return slices.ContainsFunc(r, func(one Refusal) bool {
		return apierrors.IsInvalid(one.Err) || apierrors.IsBadRequest(one.Err) || errors.Is(one.Err, ErrOwned)
	})
}

// ErrOwned says that an object belongs to another owner.
var ErrOwned = errors.New("it belongs to another Bundle")

// Changes are what has to be written to bring a release about.
type Changes struct {
	// write is needed now; later could not be checked before its kind or namespace, part of the same release, exists.
	write, later []*unstructured.Unstructured
}

// Empty reports whether all is as it should be.
func (c Changes) Empty() bool { return len(c.write)+len(c.later) == 0 }

// Refs names the objects that are written.
func (c Changes) Refs() []Ref { return Refs(slices.Concat(c.write, c.later)) }

// Check finds by dry runs what has to be written. The error is Refusals where objects are refused.
func (r *Releaser) Check(ctx context.Context, objects []*unstructured.Unstructured) (Changes, error) {
	given := provided(objects)
	results := make([]result, len(objects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, o := range objects {
		g.Go(func() error {
			results[i] = r.check(ctx, o)
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return Changes{}, fmt.Errorf("checking objects: %w", err)
	}
	var c Changes
	var refused Refusals
	for i, o := range objects {
		switch {
		case results[i].err != nil && given.explains(o, results[i].err):
			c.later = append(c.later, o)
		case results[i].err != nil:
			refused = append(refused, Refusal{RefOf(o), results[i].err})
		case results[i].changed:
			c.write = append(c.write, o)
		}
	}
	if len(refused) > 0 {
		return Changes{}, refused
	}
	return c, nil
}

type result struct {
	changed bool
	err     error
}

func (r *Releaser) check(ctx context.Context, o *unstructured.Unstructured) result {
	entry, live, _, err := r.ssa.Diff(ctx, o.DeepCopy(), ssa.DefaultDiffOptions())
	if err != nil {
		return result{err: cause(err)}
	}
	if live != nil {
		if has := r.owner.of(live); has.Name != "" && has != r.owner {
			return result{err: fmt.Errorf("%w: %s/%s", ErrOwned, has.Namespace, has.Name)}
		}
	}
	return result{changed: entry.Action != ssa.UnchangedAction}
}

// cause is the API server's own error: the text around it names the object, which Refusal does.
func cause(err error) error {
	var answer *apierrors.StatusError
	if errors.As(err, &answer) {
		return answer
	}
	return err
}

// gifts are the kinds and namespaces that a release brings itself.
type gifts struct {
	kinds      map[schema.GroupKind]bool
	namespaces map[string]bool
}

func provided(objects []*unstructured.Unstructured) gifts {
	g := gifts{map[schema.GroupKind]bool{}, map[string]bool{}}
	for _, o := range objects {
		switch o.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "Namespace"}:
			g.namespaces[o.GetName()] = true
		case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			g.kinds[schema.GroupKind{Group: group, Kind: kind}] = true
		}
	}
	return g
}

// explains reports whether err means no more than that something of the same release is not there yet.
func (g gifts) explains(o *unstructured.Unstructured, err error) bool {
	if meta.IsNoMatchError(err) {
		return g.kinds[o.GroupVersionKind().GroupKind()]
	}
	return apierrors.IsNotFound(err) && (g.namespaces[o.GetNamespace()] || g.kinds[o.GroupVersionKind().GroupKind()])
}
