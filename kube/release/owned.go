package release

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/names"
)

// Groups of owners.
const (
	BundleGroup   = "bundle.virtstack.io"
	OperatorGroup = "operator.virtstack.io"
)

// ErrOwned says that an object belongs to another owner.
var ErrOwned = errors.New("it belongs to another owner")

// Owned is the error of an object that belongs to another owner, or to another Git tool.
type Owned struct {
	By   Owner
	Tool string
}

func (o *Owned) Error() string {
	if o.Tool != "" {
		return fmt.Sprintf("it belongs to %s; take it out of one of the two", o.Tool)
	}
	who := "another Bundle"
	if o.By.Group == OperatorGroup {
		who = "the components of KubeVirt"
	}
	return fmt.Sprintf("it belongs to %s: %s/%s; take it out of one of the two", who, o.By.Namespace, o.By.Name)
}

// Is makes it an ErrOwned.
func (o *Owned) Is(target error) bool { return target == ErrOwned }

// Holds tells whether an owner still claims an object that carries its labels: labels outlive who has let an object go.
type Holds func(context.Context, Owner, Ref) (bool, error)

// others returns the owners beside r's that an object says it has.
func (r *Releaser) others(obj client.Object) []Owner {
	var all []Owner
	for _, group := range []string{BundleGroup, OperatorGroup, r.owner.Group} {
		has := Owner{Group: group}.of(obj)
		if has.Name != "" && has != r.owner {
			all = append(all, has)
		}
	}
	return all
}

// free returns an Owned error for an object that somebody else claims.
func (r *Releaser) free(ctx context.Context, live *unstructured.Unstructured) error {
	for _, other := range r.others(live) {
		held, err := true, error(nil)
		if r.Holds != nil {
			held, err = r.Holds(ctx, other, RefOf(live))
		}
		if err != nil {
			return fmt.Errorf("asking whether %s/%s still claims it: %w", other.Namespace, other.Name, err)
		}
		if held {
			return &Owned{By: other}
		}
	}
	if tool, taken := r.tool(live); taken {
		return &Owned{Tool: tool}
	}
	return nil
}

// tool names the other Git tool that has an object, for a release that yields to them.
func (r *Releaser) tool(live client.Object) (string, bool) {
	if !r.Yields {
		return "", false
	}
	other, taken := names.OtherGitOwner(live, r.manager)
	return other.String(), taken
}

// mine tells whether an object carries the owner's labels and nobody else has taken it over.
func (r *Releaser) mine(live client.Object) bool {
	_, taken := r.tool(live)
	return !taken && r.owner.of(live) == r.owner
}

// untaken reads an object with its managed fields, which a diff leaves out; nil: there is none. The error is free's answer.
func (r *Releaser) untaken(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live := RefOf(o).Empty()
	err := r.client.Get(ctx, client.ObjectKeyFromObject(o), live)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return live, r.free(ctx, live)
}

// strange tells whether an object was made without the owner: it has other labels than the owner's, and either they are
// of another owner or nothing of it was written as the owner writes.
func (r *Releaser) strange(live *unstructured.Unstructured) bool {
	has := r.owner.of(live)
	ours := func(f metav1.ManagedFieldsEntry) bool { return f.Manager == r.manager }
	return has != r.owner && (has.Name != "" || !slices.ContainsFunc(live.GetManagedFields(), ours))
}

// TakenOver returns what was there, and not the owner's, before it was written: nobody claimed it.
func (r *Releaser) TakenOver() []Ref {
	r.lock.Lock()
	defer r.lock.Unlock()
	return Sorted(r.taken)
}

// taking are locks on objects by their IDs: who is to own an object is asked and written as one, so that of two owners
// in this process that find it free one gets it.
var taking [64]sync.Mutex

// take writes an object unless it is somebody else's by now.
func (r *Releaser) take(ctx context.Context, o *unstructured.Unstructured) error {
	id := fnv.New32a()
	_, _ = id.Write([]byte(RefOf(o).ID())) // never fails
	lock := &taking[id.Sum32()%uint32(len(taking))]
	lock.Lock()
	defer lock.Unlock()
	live, err := r.untaken(ctx, o)
	if err != nil {
		return err
	}
	err = r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.ForceOwnership, client.FieldOwner(r.manager))
	if err == nil && live != nil && r.strange(live) {
		r.lock.Lock()
		defer r.lock.Unlock()
		r.taken = append(r.taken, RefOf(o))
	}
	return err
}
