package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	core "kubevirt.io/api/core/v1"
)

// union is a set of fields of an object of which no two may be given. machine/validate has the same rules.
type union struct {
	// fields is a Go type whose pointers are the union's fields, but for those that more names.
	fields reflect.Type
	more   []string
	// needed says that one must be given.
	needed bool
	// preferred says that it need not be where a preference may say which.
	preferred bool
}

var unions = []union{
	{fields: reflect.TypeFor[core.VolumeSource](), needed: true},
	{fields: reflect.TypeFor[core.NetworkSource](), needed: true},
	{fields: reflect.TypeFor[core.InterfaceBindingMethod](), more: []string{"binding"}, needed: true, preferred: true},
	{fields: reflect.TypeFor[core.DiskDevice]()},
	{fields: reflect.TypeFor[core.Bootloader]()},
	{fields: reflect.TypeFor[core.AccessCredential](), needed: true},
}

// unite adds the rule of the union that an object has to its schema. The lists that such objects are in have a limit of
// their own; without, the API server would take each for millions when it estimates what the rule costs.
func unite(schema *apiextensions.JSONSchemaProps, k kind) {
	for _, u := range unions {
		names := u.names()
		if !has(schema, names...) {
			continue
		}
		u.needed = u.needed && !(u.preferred && k.Prefers)
		schema.XValidations = append(schema.XValidations, u.rule(names))
	}
}

// names returns the fields of the union, sorted.
func (u union) names() []string {
	names := slices.Clone(u.more)
	for i := range u.fields.NumField() {
		name, _, _ := strings.Cut(u.fields.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return slices.Sorted(slices.Values(names))
}

func (u union) rule(names []string) apiextensions.ValidationRule {
	var count, found []string
	for _, name := range names {
		count = append(count, fmt.Sprintf("(has(self.%s) ? 1 : 0)", name))
		found = append(found, fmt.Sprintf("(has(self.%s) ? ' %s' : '')", name, name))
	}
	most, right := "<= 1", "must have only one of "
	if u.needed {
		most, right = "== 1", "must have exactly one of "
	}
	message := right + strings.Join(names, ", ")
	return apiextensions.ValidationRule{
		Rule: strings.Join(count, " + ") + " " + most, Message: message,
		MessageExpression: fmt.Sprintf("'%s, not [' + %s + ' ]'", message, strings.Join(found, " + ")),
	}
}
