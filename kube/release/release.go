// Package release keeps a set of objects applied as one: all are checked before the first is written, what the others
// need goes first, nothing is written that would change nothing, and what has left the set is removed last.
package release

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/cli-utils/pkg/object"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owner is who a release belongs to. Its labels are on every object.
type Owner struct {
	// Group is the prefix of the labels <group>/name and <group>/namespace.
	Group           string
	Namespace, Name string
}

// Labels returns the owner's labels.
func (o Owner) Labels() map[string]string {
	return map[string]string{o.Group + "/name": o.Name, o.Group + "/namespace": o.Namespace}
}

// of returns the owner in the same group that obj says it has.
func (o Owner) of(obj client.Object) Owner {
	l := obj.GetLabels()
	return Owner{Group: o.Group, Namespace: l[o.Group+"/namespace"], Name: l[o.Group+"/name"]}
}

// Releaser applies the releases of one owner with one field manager and the rights of its client.
type Releaser struct {
	// Holds says whether another owner still claims an object; nil: its labels say so.
	Holds Holds
	// Yields makes objects of other Git tools refusals: nothing of theirs is forced or removed.
	Yields bool

	// Judges say what the health of a kind is, in place of Of.
	Judges map[schema.GroupKind]Judge

	client  client.Client
	manager string
	owner   Owner

	lock  sync.Mutex
	taken []Ref
}

// New returns a Releaser.
func New(c client.Client, fieldManager string, owner Owner) *Releaser {
	return &Releaser{client: c, manager: fieldManager, owner: owner}
}

// Ref names an object and the version it was applied in.
type Ref struct {
	object.ObjMetadata
	Version string
}

// RefOf returns the Ref of an object.
func RefOf(u *unstructured.Unstructured) Ref {
	return Ref{ObjMetadata: object.UnstructuredToObjMetadata(u), Version: u.GroupVersionKind().Version}
}

// ParseRef is the reverse of Ref.ID.
func ParseRef(id, version string) (Ref, error) {
	m, err := object.ParseObjMetadata(id)
	if err != nil {
		return Ref{}, fmt.Errorf("parsing %q: %w", id, err)
	}
	return Ref{ObjMetadata: m, Version: version}, nil
}

// ID returns <namespace>_<name>_<group>_<kind>.
func (r Ref) ID() string { return r.ObjMetadata.String() }

// String names the object as conditions and events do.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.GroupKind.Kind + " " + r.Name
	}
	return r.GroupKind.Kind + " " + r.Namespace + "/" + r.Name
}

// Empty returns an object of which only the identity is set, to read it into.
func (r Ref) Empty() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: r.GroupKind.Group, Version: r.Version, Kind: r.GroupKind.Kind})
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	return u
}

// Refs returns the sorted Refs of objects.
func Refs(objects []*unstructured.Unstructured) []Ref {
	refs := make([]Ref, len(objects))
	for i, o := range objects {
		refs[i] = RefOf(o)
	}
	return Sorted(refs)
}

// Sorted returns refs by ID, each object once; of two versions the first stays.
func Sorted(refs []Ref) []Ref {
	refs = slices.Clone(refs)
	slices.SortStableFunc(refs, func(a, b Ref) int { return strings.Compare(a.ID(), b.ID()) })
	return slices.CompactFunc(refs, func(a, b Ref) bool { return a.ID() == b.ID() })
}

// Without returns those of refs that are not in other, whatever their version.
func Without(refs, other []Ref) []Ref {
	have := map[string]bool{}
	for _, r := range other {
		have[r.ID()] = true
	}
	return slices.DeleteFunc(slices.Clone(refs), func(r Ref) bool { return have[r.ID()] })
}
