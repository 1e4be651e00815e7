package change

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
)

// Fields returns the paths, from the VM's root, of what is to change so that a guest of spec is becomes one of spec want;
// in the order of the spec, none twice, nil for none. An entry of a list has its name in brackets, as in
// spec.template.spec.volumes[root].containerDisk.image; what comes or goes whole is named whole. How a guest starts is
// none of what it is, nor is the order of a list whose entries have names: kustomize puts new ones first.
func Fields(is, want *v1.VirtualMachineInstanceSpec) []string {
	w := *want
	w.StartStrategy = is.StartStrategy
	var d differences
	d.value("spec.template.spec", reflect.ValueOf(*is), reflect.ValueOf(w))
	return d.paths
}

type differences struct{ paths []string }

// value adds the paths at and beneath path, which both values are found at.
func (d *differences) value(path string, is, want reflect.Value) {
	if equality.Semantic.DeepEqual(is.Interface(), want.Interface()) {
		return
	}
	switch {
	case is.Kind() == reflect.Pointer && !is.IsNil() && !want.IsNil():
		d.value(path, is.Elem(), want.Elem())
	case is.Kind() == reflect.Struct && is.Type() != reflect.TypeFor[resource.Quantity]():
		d.fields(path, is, want)
	case is.Kind() == reflect.Slice && isNamed(is.Type().Elem()):
		d.entries(path, is, want)
	default:
		d.paths = append(d.paths, path)
	}
}

func (d *differences) fields(path string, is, want reflect.Value) {
	for i := range is.NumField() {
		f := is.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported():
		case name == "-" && !equality.Semantic.DeepEqual(is.Field(i).Interface(), want.Field(i).Interface()):
			d.paths = append(d.paths, path) // it differs in what has no path
		case name == "":
			d.value(path, is.Field(i), want.Field(i)) // inlined
		case name != "-":
			d.value(path+"."+name, is.Field(i), want.Field(i))
		}
	}
}

// isNamed tells whether a list's entries are known by their names.
func isNamed(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	f, ok := t.FieldByName("Name")
	return ok && f.Type.Kind() == reflect.String
}

func (d *differences) entries(path string, is, want reflect.Value) {
	if !distinct(is) || !distinct(want) { // names tell nothing apart
		d.paths = append(d.paths, path)
		return
	}
	for i := range want.Len() {
		at := fmt.Sprintf("%s[%s]", path, nameOf(want.Index(i)))
		if old, ok := named(is, nameOf(want.Index(i))); ok {
			d.value(at, old, want.Index(i))
			continue
		}
		d.paths = append(d.paths, at)
	}
	for i := range is.Len() {
		if _, ok := named(want, nameOf(is.Index(i))); !ok {
			d.paths = append(d.paths, fmt.Sprintf("%s[%s]", path, nameOf(is.Index(i))))
		}
	}
}

// distinct tells whether every entry has a name of its own.
func distinct(list reflect.Value) bool {
	seen := map[string]bool{}
	for i := range list.Len() {
		name := nameOf(list.Index(i))
		if seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}

func nameOf(entry reflect.Value) string { return entry.FieldByName("Name").String() }

func named(list reflect.Value, name string) (reflect.Value, bool) {
	for i := range list.Len() {
		if nameOf(list.Index(i)) == name {
			return list.Index(i), true
		}
	}
	return reflect.Value{}, false
}
