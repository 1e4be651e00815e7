package release

import (
	"bytes"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// same tells from an object's managed fields that an apply of want by a manager would change nothing: the manager has
// applied exactly these fields, and live shows each as it is wanted. Where that can't be told it says no, and a dry run
// has to say: values that the API server writes another way, and lists that it has put in another order.
func same(live, want *unstructured.Unstructured, manager string) bool {
	owned := applied(live, want.GetAPIVersion(), manager)
	if owned == nil || live.GetDeletionTimestamp() != nil {
		return false
	}
	fields := map[string]any{}
	for k, v := range want.Object {
		switch k {
		case "apiVersion", "kind":
		case "metadata":
			fields[k] = without(v, "name", "namespace", "creationTimestamp") // which nobody owns
		default:
			fields[k] = v
		}
	}
	return sameMap(owned, live.Object, fields)
}

func without(v any, keys ...string) any {
	m, _ := v.(map[string]any)
	out := map[string]any{}
	for k, v := range m {
		out[k] = v
	}
	for _, k := range keys {
		delete(out, k)
	}
	return out
}

// applied returns what a manager has applied to an object in a version, nil where that isn't one set.
func applied(live *unstructured.Unstructured, version, manager string) *fieldpath.Set {
	var found *fieldpath.Set
	for _, m := range live.GetManagedFields() {
		if m.Manager != manager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != "" {
			continue
		}
		set := fieldpath.NewSet()
		if found != nil || m.APIVersion != version || m.FieldsV1 == nil || set.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())) != nil {
			return nil
		}
		found = set
	}
	return found
}

// sameValue compares what is owned beneath a path: a set without members and children is a value as a whole.
func sameValue(owned *fieldpath.Set, live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		if m, ok := live.(map[string]any); ok && !owned.Empty() {
			return sameMap(owned, m, want)
		}
	case []any:
		if l, ok := live.([]any); ok && !owned.Empty() {
			return sameList(owned, l, want)
		}
	}
	return owned.Empty() && reflect.DeepEqual(live, want)
}

// beneath returns what is owned beneath an element, which is owned itself or has something beneath it that is.
func beneath(owned *fieldpath.Set, e fieldpath.PathElement) (*fieldpath.Set, bool) {
	below, ok := owned.Children.Get(e)
	if !ok {
		below = fieldpath.NewSet()
	}
	return below, ok || owned.Members.Has(e)
}

// elements are those of a set, each once.
func elements(owned *fieldpath.Set) *fieldpath.PathElementSet {
	all := &fieldpath.PathElementSet{}
	owned.Members.Iterate(all.Insert)
	owned.Children.Iterate(all.Insert)
	return all
}

func sameMap(owned *fieldpath.Set, live, want map[string]any) bool {
	if elements(owned).Size() != len(want) {
		return false
	}
	for k, w := range want {
		have, there := live[k]
		below, ok := beneath(owned, fieldpath.FieldNameElement(k))
		if !ok || !there || !sameValue(below, have, w) {
			return false
		}
	}
	return true
}

// sameList compares lists that merge by keys or values, the entries of which have to be in the same order.
func sameList(owned *fieldpath.Set, live, want []any) bool {
	if elements(owned).Size() != len(want) {
		return false
	}
	next := 0
	for _, w := range want {
		e, ok := owning(owned, w)
		if !ok {
			return false
		}
		for next < len(live) && !is(e, live[next]) {
			next++
		}
		if next == len(live) {
			return false
		}
		below, _ := beneath(owned, e)
		if e.Key != nil && !sameValue(below, live[next], w) {
			return false
		}
		next++
	}
	return true
}

// owning returns the element of a set that an entry of a list is.
func owning(owned *fieldpath.Set, entry any) (found fieldpath.PathElement, ok bool) {
	elements(owned).Iterate(func(e fieldpath.PathElement) {
		if is(e, entry) {
			found, ok = e, true
		}
	})
	return found, ok
}

// is tells whether an entry of a list has the element's key, or is its value.
func is(e fieldpath.PathElement, entry any) bool {
	if e.Value != nil {
		return value.Equals(*e.Value, value.NewValueInterface(entry))
	}
	m, ok := entry.(map[string]any)
	if e.Key == nil || !ok {
		return false
	}
	for _, f := range *e.Key {
		if !value.Equals(f.Value, value.NewValueInterface(m[f.Name])) {
			return false
		}
	}
	return true
}
