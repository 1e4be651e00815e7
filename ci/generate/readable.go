package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	backup "kubevirt.io/api/backup/v1alpha1"
	clonealpha "kubevirt.io/api/clone/v1alpha1"
	clone "kubevirt.io/api/clone/v1beta1"
	core "kubevirt.io/api/core/v1"
	exportalpha "kubevirt.io/api/export/v1alpha1"
	export "kubevirt.io/api/export/v1beta1"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
	migrations "kubevirt.io/api/migrations/v1alpha1"
	poolalpha "kubevirt.io/api/pool/v1alpha1"
	pool "kubevirt.io/api/pool/v1beta1"
	snapshotalpha "kubevirt.io/api/snapshot/v1alpha1"
	snapshot "kubevirt.io/api/snapshot/v1beta1"

	"virtstack.io/virtstack/api/v1alpha1"
)

// goDuration is what time.ParseDuration reads, but for signs, and for what is longer than it can count: a sum of six
// such parts is less than 292 years.
const goDuration = `^(0|([0-9]{1,9}([.][0-9]{1,9})?(ns|us|µs|ms|s)|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,5}([.][0-9]{1,9})?h){1,6})$`

// durationLength is the most characters of a duration.
const durationLength = int64(64)

var (
	durationType    = reflect.TypeFor[metav1.Duration]()
	intOrStringType = reflect.TypeFor[intstr.IntOrString]()
	unmarshalerType = reflect.TypeFor[json.Unmarshaler]()
)

// goTypes knows the Go type of every kind.
func goTypes() (*runtime.Scheme, error) {
	types := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		backup.AddToScheme, clonealpha.AddToScheme, clone.AddToScheme, core.AddToScheme, exportalpha.AddToScheme,
		export.AddToScheme, instancetype.AddToScheme, migrations.AddToScheme, poolalpha.AddToScheme, pool.AddToScheme,
		snapshotalpha.AddToScheme, snapshot.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(types); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	return types, nil
}

// readable makes a schema refuse what a Go client cannot read into the type of the kind, and take what it
// can. One unreadable object would end every watch of its kind, in every component.
func readable(types *runtime.Scheme, props *apiextensions.JSONSchemaProps, k kind, v version) error {
	id := schema.GroupVersionKind{Group: k.Group, Version: path.Base(v.Package), Kind: k.Kind}
	object, err := types.New(id)
	if err != nil {
		return fmt.Errorf("looking for the Go type of %s: %w", id, err)
	}
	fit(props, reflect.TypeOf(object).Elem())
	return nil
}

// duration makes a schema say in words what a duration looks like, and ask other rules only about what is one: CEL itself
// answers those of another text with an error of its own.
func duration(props *apiextensions.JSONSchemaProps) {
	length := durationLength
	props.MaxLength = &length
	is := "self.matches('" + goDuration + "')"
	for i := range props.XValidations {
		props.XValidations[i].Rule = "!" + is + " || " + props.XValidations[i].Rule
	}
	props.XValidations = append(apiextensions.ValidationRules{{Rule: is,
		Message: "must be a duration: numbers with units, such as 30s, 5m or 1h30m, and less than 292 years"}}, props.XValidations...)
}

func fit(props *apiextensions.JSONSchemaProps, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == durationType:
		duration(props)
		return
	case t == intOrStringType:
		bound(props, math.MinInt32, math.MaxInt32)
		return
	case reflect.PointerTo(t).Implements(unmarshalerType):
		return
	}
	switch t.Kind() {
	case reflect.Struct:
		fitFields(props, t)
	case reflect.Slice:
		if props.Items != nil && props.Items.Schema != nil {
			fit(props.Items.Schema, t.Elem())
		}
	case reflect.Map:
		if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
			fit(props.AdditionalProperties.Schema, t.Elem())
		}
	default:
		fitNumber(props, t.Kind())
	}
}

func fitFields(props *apiextensions.JSONSchemaProps, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && field.Anonymous {
			fit(props, field.Type)
			continue
		}
		if property, ok := props.Properties[name]; ok {
			fit(&property, field.Type)
			props.Properties[name] = property
		}
	}
}

// fitNumber corrects integers: the schema generator takes unsigned ones for signed.
func fitNumber(props *apiextensions.JSONSchemaProps, kind reflect.Kind) {
	switch kind {
	case reflect.Uint32:
		props.Format = "int64"
		bound(props, 0, math.MaxUint32)
	case reflect.Uint, reflect.Uint64:
		props.Format = "int64"
		bound(props, 0, math.MaxInt64)
	case reflect.Int, reflect.Int64:
		props.Format = "int64"
	}
}

// bound narrows the range of a number; the format already says what is beyond 64 bits.
func bound(props *apiextensions.JSONSchemaProps, least, most float64) {
	if props.Minimum == nil || *props.Minimum < least {
		props.Minimum = &least
	}
	if most < math.MaxInt64 && (props.Maximum == nil || *props.Maximum > most) {
		props.Maximum = &most
	}
}
