// Package schema checks objects against the custom resource definitions of this release as the API server does
// before it asks any webhook: unknown fields, types, required fields, lists that are maps, and CEL rules.
package schema

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apicel "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// Definitions are custom resource definitions. Each is read when its kind is first met; they may be used by several
// goroutines.
type Definitions struct {
	files fs.FS
	names []string // of files, each <plural>.<group>.yaml

	mu       sync.Mutex
	kinds    map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition
	compiled map[schema.GroupVersionKind]*compiled
}

// compiled is one version of a kind.
type compiled struct {
	namespaced bool
	shape      *structural.Structural
	types      validation.SchemaValidator
	rules      *cel.Validator
}

// Read returns the definitions in a directory's files, which are named as controller-gen names them: <plural>.<group>.yaml.
func Read(files fs.FS) (*Definitions, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing definitions: %w", err)
	}
	return &Definitions{
		files: files, names: names,
		kinds:    map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{},
		compiled: map[schema.GroupVersionKind]*compiled{},
	}, nil
}

// Knows tells whether there is a definition of the object's kind, or at least of its group.
func (d *Definitions) Knows(kind schema.GroupVersionKind) bool {
	return len(d.of(kind.Group)) > 0
}

// of returns the files of a group's definitions.
func (d *Definitions) of(group string) []string {
	var found []string
	for _, name := range d.names {
		if _, of, ok := strings.Cut(strings.TrimSuffix(name, ".yaml"), "."); ok && of == group {
			found = append(found, name)
		}
	}
	return found
}

// definition returns the definition of a kind; nil if there is none.
func (d *Definitions) definition(kind schema.GroupKind) (*apiextensionsv1.CustomResourceDefinition, error) {
	if crd, ok := d.kinds[kind]; ok {
		return crd, nil
	}
	for _, name := range d.of(kind.Group) {
		content, err := fs.ReadFile(d.files, name)
		if err != nil {
			return nil, fmt.Errorf("reading definitions: %w", err)
		}
		if !bytes.Contains(content, []byte("kind: "+kind.Kind+"\n")) {
			continue // to decode them all takes seconds
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if crd.Spec.Group == kind.Group && crd.Spec.Names.Kind == kind.Kind {
			d.kinds[kind] = crd
			return crd, nil
		}
	}
	return nil, nil
}

// Check returns what is wrong with the shape of an object, which is changed as the API server would: defaults are
// filled in and unknown fields dropped. The error is about the definition, not the object.
func (d *Definitions) Check(ctx context.Context, o *unstructured.Unstructured) (field.ErrorList, error) {
	kind := o.GroupVersionKind()
	v, wrong, err := d.version(kind)
	if err != nil || len(wrong) > 0 {
		return wrong, err
	}
	unknown := pruning.PruneWithOptions(o.Object, v.shape, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	errs := field.ErrorList{}
	for _, at := range unknown {
		errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: at, BadValue: field.OmitValueType{},
			Detail: "unknown field: look for a slip of the pen, or a wrong place"})
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(o.Object, v.shape)
	defaulting.Default(o.Object, v.shape)
	if err, _ := objectmeta.CoerceWithOptions(nil, o.Object, v.shape, true, objectmeta.CoerceOptions{}); err != nil {
		return append(errs, err), nil
	}
	if v.namespaced && o.GetNamespace() == "" {
		o.SetNamespace("default") // what it goes to is not the manifest's to say
	}
	errs = append(errs, apivalidation.ValidateObjectMetaAccessor(o, v.namespaced, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))...)
	errs = append(errs, validation.ValidateCustomResource(nil, o.Object, v.types)...)
	errs = append(errs, objectmeta.Validate(ctx, nil, o.Object, v.shape, true)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.shape, o.Object)...)
	if len(errs) > 0 || v.rules == nil {
		return errs, nil
	}
	errs, _ = v.rules.Validate(ctx, nil, v.shape, o.Object, nil, apicel.RuntimeCELCostBudget)
	return errs, nil
}

// version returns a version of a kind, compiled, or what is wrong with its name.
func (d *Definitions) version(kind schema.GroupVersionKind) (*compiled, field.ErrorList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.compiled[kind]; ok {
		return v, nil, nil
	}
	crd, err := d.definition(kind.GroupKind())
	if err != nil {
		return nil, nil, err
	}
	if crd == nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("kind"), kind.Kind, "must be a kind of "+kind.Group)}, nil
	}
	var served []string
	for _, v := range crd.Spec.Versions {
		served = append(served, kind.Group+"/"+v.Name)
		if v.Name != kind.Version {
			continue
		}
		made, err := compile(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, nil, fmt.Errorf("reading the definition of %s: %w", kind, err)
		}
		made.namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
		d.compiled[kind] = made
		return made, nil, nil
	}
	return nil, field.ErrorList{field.NotSupported(field.NewPath("apiVersion"), kind.GroupVersion().String(), served)}, nil
}

func compile(in *apiextensionsv1.JSONSchemaProps) (*compiled, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(in, props, nil); err != nil {
		return nil, err
	}
	shape, err := structural.NewStructural(props)
	if err != nil {
		return nil, err
	}
	types, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	return &compiled{shape: shape, types: types, rules: cel.NewValidator(shape, true, apicel.PerCallLimit)}, nil
}

// JSON returns the object as the webhooks get it.
func JSON(o *unstructured.Unstructured) ([]byte, error) {
	return runtime.Encode(unstructured.UnstructuredJSONScheme, o)
}
