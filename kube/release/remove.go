package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/names"
)

// Remove deletes those of refs that still carry the owner's labels, in the order given, and returns which of them are
// not gone yet. It never waits. An object that another owner has taken over is left alone, and one that is protected
// stays: then, or if a machine could not be looked at, so does what would take it or its disks along.
func (r *Releaser) Remove(ctx context.Context, refs []Ref) (left []Ref, err error) {
	var errs []error
	safe := true // no machine of refs is protected, as far as can be told
	remove := func(ref Ref) {
		gone, err := r.remove(ctx, ref)
		if err != nil && !errors.Is(err, errProtected) {
			errs = append(errs, fmt.Errorf("removing %s: %w", ref, err))
		}
		if !gone {
			left = append(left, ref)
		}
		safe = safe && (err == nil || !slices.Contains(names.Protectable, ref.GroupKind))
	}
	var carriers []Ref
	for _, ref := range refs {
		if slices.Contains(names.Carriers, ref.GroupKind) {
			carriers = append(carriers, ref)
			continue
		}
		remove(ref)
	}
	for i, ref := range carriers {
		if !safe {
			left = append(left, carriers[i:]...)
			break
		}
		remove(ref)
	}
	return left, errors.Join(errs...)
}

var errProtected = errors.New("protected")

func (r *Releaser) remove(ctx context.Context, ref Ref) (gone bool, err error) {
	u := ref.Empty()
	err = r.client.Get(ctx, client.ObjectKeyFromObject(u), u)
	switch {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return true, nil
	case err != nil:
		return false, err
	case !r.mine(u):
		return true, nil
	case u.GetDeletionTimestamp() != nil:
		return false, nil
	case Protected(u):
		return false, errProtected
	}
	// As it was seen: it may be another owner's a moment later.
	uid, version := u.GetUID(), u.GetResourceVersion()
	err = r.client.Delete(ctx, u, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return false, err
}

// Present returns those of refs that exist and carry the owner's labels, and which of them are protected.
func (r *Releaser) Present(ctx context.Context, refs []Ref) (found, protected []Ref, err error) {
	for _, ref := range refs {
		u := ref.Empty()
		err := r.client.Get(ctx, client.ObjectKeyFromObject(u), u)
		switch {
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		case err != nil:
			return nil, nil, fmt.Errorf("reading %s: %w", ref, err)
		case r.mine(u):
			found = append(found, ref)
			if Protected(u) && u.GetDeletionTimestamp() == nil {
				protected = append(protected, ref)
			}
		}
	}
	return found, protected, nil
}

// Protected tells whether an object says that nobody deletes it, as VMs and pools can.
func Protected(u client.Object) bool { return u.GetLabels()[names.DeleteProtection] == "True" }
