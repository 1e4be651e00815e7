package config

import (
	"reflect"
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"
)

// Each path leads to a field of a KubeVirt's spec: one that is misspelt would never be named.
func TestIgnoredFieldsAreFields(t *testing.T) {
	for _, f := range without {
		at := reflect.TypeFor[v1.KubeVirtSpec]()
		for name := range strings.SplitSeq(f.field, ".") {
			if at = inside(at, name); at == nil {
				t.Errorf("%s: there is no field %s", f.field, name)
				break
			}
		}
	}
}

// inside returns the type of a field by its name in JSON; nil: there is none.
func inside(t reflect.Type, name string) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return t.Field(i).Type
		}
	}
	return nil
}
