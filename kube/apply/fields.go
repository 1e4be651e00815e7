package apply

import (
	"bytes"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// listKeys are the lists that merge by a key of their entries, as our CRDs declare them (writers.md).
var listKeys = map[string]string{"conditions": "type", "volumeStatus": "name"}

// listSets are the lists that merge by value.
var listSets = map[string]bool{"finalizers": true}

// pruned returns a copy of in without zero values: some types of kubevirt.io/api lack omitempty, and what an apply
// says it owns. path is that of in beneath the applied part; paths in keep stay whatever their value.
func pruned(in map[string]any, path string, keep map[string]bool) map[string]any {
	out := map[string]any{}
	for k, v := range in {
		at := k
		if path != "" {
			at = path + "." + k
		}
		v = prunedValue(v, at, keep)
		if keep[at] || !zero(v) {
			out[k] = v
		}
	}
	return out
}

func prunedValue(v any, path string, keep map[string]bool) any {
	switch v := v.(type) {
	case map[string]any:
		return pruned(v, path, keep)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = prunedValue(e, path, keep)
		}
		return out
	}
	return v
}

func zero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return reflect.ValueOf(v).IsZero()
}

// settled tells whether an apply of fields would change nothing: live shows every value, the manager owns every one,
// and it owns nothing else in this part of the object.
func (a Applier) settled(live client.Object, subresource string, fields map[string]any) (bool, error) {
	owned, err := a.owned(live, subresource)
	if err != nil {
		return false, err
	}
	want := fieldpath.NewSet()
	collect(want, nil, fields)
	for part := range fields {
		root := fieldpath.MakePathOrDie(part)
		want.Insert(root)
	}
	if !owned.Difference(want).Empty() {
		return false, nil
	}
	all := true
	want.Leaves().Iterate(func(path fieldpath.Path) { // not All: that iterator panics when its loop ends early
		all = all && (len(path) == 1 || covered(owned, path))
	})
	if !all {
		return false, nil
	}
	have, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return false, fmt.Errorf("converting %s: %w", live.GetName(), err)
	}
	return contains(have, fields, ""), nil
}

// Owns tells whether this manager has applied the field of the object or its subresource that path names, from the
// root: Owns(vmi, "status", "status", "phase").
func (a Applier) Owns(live client.Object, subresource string, path ...string) bool {
	elements := make(fieldpath.Path, 0, len(path))
	for _, p := range path {
		elements = append(elements, fieldpath.FieldNameElement(p))
	}
	set, err := a.owned(live, subresource)
	return err == nil && set.Has(elements)
}

// Keys returns the keys of metadata.labels or metadata.annotations, whichever field names, that this manager has set in
// any way.
func (a Applier) Keys(live client.Object, field string) []string {
	var out []string
	for _, m := range live.GetManagedFields() {
		set := fieldpath.NewSet()
		if m.Manager != a.Manager || m.FieldsV1 == nil || set.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())) != nil {
			continue
		}
		for path := range set.All() {
			if len(path) == 3 && path[:2].Equals(fieldpath.MakePathOrDie("metadata", field)) && path[2].FieldName != nil {
				out = append(out, *path[2].FieldName)
			}
		}
	}
	return out
}

// owned returns the fields that this manager applied to the object or its subresource.
func (a Applier) owned(live client.Object, subresource string) (*fieldpath.Set, error) {
	set := fieldpath.NewSet()
	for _, m := range live.GetManagedFields() {
		if m.Manager != a.Manager || m.Operation != metav1.ManagedFieldsOperationApply || m.Subresource != subresource || m.FieldsV1 == nil {
			continue
		}
		one := fieldpath.NewSet()
		if err := one.FromJSON(bytes.NewReader(m.FieldsV1.GetRawBytes())); err != nil {
			return nil, fmt.Errorf("reading the managed fields of %s: %w", live.GetName(), err)
		}
		set = set.Union(one)
	}
	return set, nil
}

// covered tells whether the set has path or something above it: a map or list that is owned as a whole.
func covered(set *fieldpath.Set, path fieldpath.Path) bool {
	for n := len(path); n > 1; n-- {
		if set.Has(path[:n]) {
			return true
		}
	}
	return false
}

// collect inserts every path of v beneath prefix, inner ones too: which of them are leaves is the schema's to say.
func collect(set *fieldpath.Set, prefix fieldpath.Path, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			insert(set, append(prefix.Copy(), fieldpath.FieldNameElement(k)), e)
		}
	case []any:
		list := *prefix[len(prefix)-1].FieldName
		for _, e := range v {
			collectEntry(set, prefix, list, e)
		}
	}
}

func collectEntry(set *fieldpath.Set, prefix fieldpath.Path, list string, entry any) {
	if listSets[list] {
		set.Insert(append(prefix.Copy(), fieldpath.ValueElement(value.NewValueInterface(entry))))
		return
	}
	if key, ok := listKeys[list]; ok {
		id := entry.(map[string]any)[key]
		insert(set, append(prefix.Copy(), fieldpath.KeyElementByFields(key, id)), entry)
	}
}

func insert(set *fieldpath.Set, path fieldpath.Path, v any) {
	set.Insert(path)
	collect(set, path, v)
}

// contains tells whether have shows every value of want. list names the field that holds them.
func contains(have, want any, list string) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		for k, w := range want {
			if !ok || !contains(have[k], w, k) {
				return false
			}
		}
		return true
	case []any:
		have, ok := have.([]any)
		if !ok {
			return false
		}
		if listSets[list] || listKeys[list] != "" {
			return containsEntries(have, want, list)
		}
		return reflect.DeepEqual(prunedValue(have, "", nil), prunedValue(want, "", nil))
	}
	return reflect.DeepEqual(have, want)
}

func containsEntries(have, want []any, list string) bool {
	for _, w := range want {
		h, ok := entry(have, w, listKeys[list])
		if !ok || !contains(h, w, "") {
			return false
		}
	}
	return true
}

// entry finds the entry of a list that has want's key, or is want where the list has none.
func entry(have []any, want any, key string) (any, bool) {
	for _, h := range have {
		if key == "" && h == want || key != "" && h.(map[string]any)[key] == want.(map[string]any)[key] {
			return h, true
		}
	}
	return nil, false
}
