package release

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// several is from how many objects of a kind in a namespace on they are listed, not read one by one.
	several = 8
	// page is how many objects are read at a time, so that no more of them are held than have to be.
	page = 250
)

// looked is what the API server has of a release: what is as it should be by its ID, and the rest of what was read.
type looked struct {
	same map[string]bool
	live map[string]*unstructured.Unstructured
	// all are the groups of which every object with the owner's labels was read.
	all map[group]bool
}

// group is one kind in one namespace.
type group struct {
	kind      schema.GroupVersionKind
	namespace string
}

func groupOf(o *unstructured.Unstructured) group {
	return group{o.GroupVersionKind(), o.GetNamespace()}
}

// look lists the objects of a release that are there, where there are several of a kind. What can't be listed is not an
// error: it is read on its own.
func (r *Releaser) look(ctx context.Context, objects []*unstructured.Unstructured) *looked {
	l := &looked{map[string]bool{}, map[string]*unstructured.Unstructured{}, map[group]bool{}}
	wanted, of := map[string]*unstructured.Unstructured{}, map[group]int{}
	for _, o := range objects {
		wanted[RefOf(o).ID()] = o
		of[groupOf(o)]++
	}
	for g, n := range of {
		if n >= several {
			l.all[g] = r.list(ctx, g, func(live *unstructured.Unstructured) {
				id := RefOf(live).ID()
				switch want := wanted[id]; {
				case want == nil:
				case same(live, want, r.manager):
					l.same[id] = true
				default:
					l.live[id] = live
				}
			})
		}
	}
	return l
}

// list gives each object of a group with the owner's labels to see, and tells whether it got to the end.
func (r *Releaser) list(ctx context.Context, g group, see func(*unstructured.Unstructured)) bool {
	next := ""
	for {
		some := &unstructured.UnstructuredList{}
		some.SetGroupVersionKind(g.kind.GroupVersion().WithKind(g.kind.Kind + "List"))
		err := r.client.List(ctx, some, client.InNamespace(g.namespace), client.MatchingLabels(r.owner.Labels()), client.Limit(page), client.Continue(next))
		if err != nil {
			return false
		}
		for i := range some.Items {
			see(&some.Items[i])
		}
		if next = some.GetContinue(); next == "" {
			return true
		}
	}
}

// seen answers reads of objects from what was looked at before.
type seen struct {
	client.Client
	*looked
}

// Get reads what was not looked at. What a list by labels doesn't have may be there without them: that a dry run tells.
func (s seen) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		return s.Client.Get(ctx, key, into, opts...)
	}
	named := u.DeepCopy()
	named.SetNamespace(key.Namespace)
	named.SetName(key.Name)
	if live := s.live[RefOf(named).ID()]; live != nil {
		live.DeepCopyInto(u)
		return nil
	}
	if s.all[groupOf(named)] {
		gvk := u.GroupVersionKind()
		return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
	}
	return s.Client.Get(ctx, key, into, opts...)
}
