package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"virtstack.io/virtstack/machine/change"
)

// others are the fields of an object that its author doesn't write.
var others = map[string][]string{
	"":         {"status"},
	"metadata": {"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"},
}

// differences returns the paths in which two objects differ, sorted, without the values: those may be secret.
func differences(is, want map[string]any) []change.Field {
	var paths []string
	walk("", is, want, &paths)
	slices.Sort(paths)
	var fields []change.Field
	for _, p := range slices.Compact(paths) {
		fields = append(fields, change.Field{Path: p, Class: change.None})
	}
	return fields
}

// written tells whether anything differs of what the author writes, be it an order.
func written(is, want map[string]any) bool {
	for k := range keysOf(is, want) {
		m, one := is[k].(map[string]any)
		n, two := want[k].(map[string]any)
		if k == "metadata" && one && two {
			m, n = maps.Clone(m), maps.Clone(n)
			for _, field := range others[k] {
				delete(m, field)
				delete(n, field)
			}
			if !reflect.DeepEqual(m, n) {
				return true
			}
			continue
		}
		if !slices.Contains(others[""], k) && !reflect.DeepEqual(is[k], want[k]) {
			return true
		}
	}
	return false
}

func walk(path string, is, want map[string]any, paths *[]string) {
	for _, k := range slices.Sorted(keysOf(is, want)) {
		if slices.Contains(others[path], k) {
			continue
		}
		at := join(path, k)
		a, b := is[k], want[k]
		m, one := a.(map[string]any)
		n, two := b.(map[string]any)
		l, three := a.([]any)
		o, four := b.([]any)
		switch {
		case reflect.DeepEqual(a, b):
		case one && two:
			walk(at, m, n, paths)
		case three && four && named(l) && named(o):
			entries(at, l, o, paths)
		default:
			*paths = append(*paths, at)
		}
	}
}

// join adds a key to a path; one that has no form of a field stands in brackets.
func join(path, key string) string {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') {
			return path + "[" + key + "]"
		}
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// named tells whether the entries of a list are known by names of their own, so that their order says nothing.
func named(list []any) bool {
	seen := map[string]bool{}
	for _, e := range list {
		name := nameOf(e)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

func nameOf(entry any) string {
	m, _ := entry.(map[string]any)
	name, _ := m["name"].(string)
	return name
}

func entries(path string, is, want []any, paths *[]string) {
	old := map[string]any{}
	for _, e := range is {
		old[nameOf(e)] = e
	}
	for _, e := range want {
		at := fmt.Sprintf("%s[%s]", path, nameOf(e))
		before, ok := old[nameOf(e)].(map[string]any)
		delete(old, nameOf(e))
		if !ok {
			*paths = append(*paths, at)
			continue
		}
		walk(at, before, e.(map[string]any), paths)
	}
	for name := range old {
		*paths = append(*paths, fmt.Sprintf("%s[%s]", path, name))
	}
}

// keysOf yields the keys of all maps, each once.
func keysOf[K comparable, V any](all ...map[K]V) func(func(K) bool) {
	union := map[K]bool{}
	for _, m := range all {
		for k := range m {
			union[k] = true
		}
	}
	return maps.Keys(union)
}
