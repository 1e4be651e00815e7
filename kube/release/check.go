package release

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"golang.org/x/sync/errgroup"

	"virtstack.io/virtstack/machine/names"
)

// parallel is how many objects are checked, or written, at a time.
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

// Changes are what has to be written to bring a release about.
type Changes struct {
	// write is needed now; later could not be checked before its kind or namespace, part of the same release, exists.
	write, later []*unstructured.Unstructured
}

// Empty reports whether all is as it should be.
func (c Changes) Empty() bool { return len(c.write)+len(c.later) == 0 }

// Of returns the same changes of objects that were built again.
func (c Changes) Of(objects []*unstructured.Unstructured) Changes {
	return Changes{write: among(objects, c.write), later: among(objects, c.later)}
}

// among returns those of objects that are in others too, whatever they look like there.
func among(objects, others []*unstructured.Unstructured) []*unstructured.Unstructured {
	in := map[string]bool{}
	for _, o := range others {
		in[RefOf(o).ID()] = true
	}
	var all []*unstructured.Unstructured
	for _, o := range objects {
		if in[RefOf(o).ID()] {
			all = append(all, o)
		}
	}
	return all
}

// Refs names the objects that are written.
func (c Changes) Refs() []Ref { return Refs(slices.Concat(c.write, c.later)) }

// Unanswered is an object that the API server could not be asked about, or that could not be written, for a reason that
// lies in the moment: a timeout, a lost connection, an overload, a conflict. It says nothing about the object: try again.
type Unanswered struct {
	Object Ref
	Err    error
}

func (u *Unanswered) Error() string {
	return u.Object.String() + ": " + u.Err.Error() + "; trying again"
}

// Unwrap returns what came instead of an answer.
func (u *Unanswered) Unwrap() error { return u.Err }

// refuses reports whether err is an answer about the object itself, which the same request gets again: one of HTTP's 4xx,
// an unknown kind, or another owner.
func refuses(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return meta.IsNoMatchError(err) || errors.Is(err, ErrOwned)
	}
	if strings.Contains(answer.Status().Message, names.Untyped) {
		return true
	}
	switch code := answer.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// failure is the error of what went wrong with one object.
func failure(of Ref, err error) error {
	if refuses(err) {
		return Refusals{{of, err}}
	}
	return &Unanswered{of, err}
}

// Check finds what has to be written: by dry runs, but of objects that show that they are as they should be. The error is
// Refusals where objects are refused, and Unanswered where that can't be told of one of them now.
func (r *Releaser) Check(ctx context.Context, objects []*unstructured.Unstructured) (Changes, error) {
	given := provided(objects)
	results := make([]result, len(objects))
	known := r.look(ctx, objects)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, o := range objects {
		g.Go(func() error {
			results[i] = r.check(ctx, known, o)
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return Changes{}, fmt.Errorf("checking objects: %w", err)
	}
	var c Changes
	var refused Refusals
	var unanswered error
	for i, o := range objects {
		switch {
		case results[i].err != nil && given.explains(o, results[i].err):
			c.later = append(c.later, o)
		case results[i].err != nil && !refuses(results[i].err):
			unanswered = failure(RefOf(o), results[i].err)
		case results[i].err != nil:
			refused = append(refused, Refusal{RefOf(o), results[i].err})
		case results[i].changed:
			c.write = append(c.write, o)
		}
	}
	if len(refused) > 0 {
		return Changes{}, refused
	}
	if unanswered != nil {
		return Changes{}, fmt.Errorf("checking %w", unanswered)
	}
	return c, nil
}

type result struct {
	changed bool
	err     error
}

func (r *Releaser) check(ctx context.Context, known *looked, o *unstructured.Unstructured) result {
	if known.same[RefOf(o).ID()] {
		return result{}
	}
	differ := ssa.NewResourceManager(seen{r.client, known}, nil, ssa.Owner{Field: r.manager, Group: r.owner.Group})
	entry, live, _, err := differ.Diff(ctx, o.DeepCopy(), ssa.DefaultDiffOptions())
	if err != nil {
		return result{err: cause(err)}
	}
	if live != nil {
		if _, err := r.untaken(ctx, o); err != nil {
			return result{err: err}
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

// gifts are the kinds, namespaces and admission policies that a release brings itself.
type gifts struct {
	kinds      map[schema.GroupKind]bool
	namespaces map[string]bool
	policies   map[string]bool
}

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
	// noPolicy is in the API server's answer about a binding with parameters by somebody who can't read everything: what they
	// have to be allowed to read the policy tells.
	noPolicy = "unable to get policy"
)

func provided(objects []*unstructured.Unstructured) gifts {
	g := gifts{map[schema.GroupKind]bool{}, map[string]bool{}, map[string]bool{}}
	for _, o := range objects {
		switch o.GroupVersionKind().GroupKind() {
		case schema.GroupKind{Kind: "Namespace"}:
			g.namespaces[o.GetName()] = true
		case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: policyKind}:
			g.policies[o.GetName()] = true
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
	if policy, _, _ := unstructured.NestedString(o.Object, "spec", "policyName"); o.GetKind() == bindingKind && g.policies[policy] {
		return strings.Contains(err.Error(), noPolicy)
	}
	if meta.IsNoMatchError(err) {
		return g.kinds[o.GroupVersionKind().GroupKind()]
	}
	return apierrors.IsNotFound(err) && (g.namespaces[o.GetNamespace()] || g.kinds[o.GroupVersionKind().GroupKind()])
}
