package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-tools/pkg/crd"
	crdmarkers "sigs.k8s.io/controller-tools/pkg/crd/markers"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
	"sigs.k8s.io/yaml"
)

const crdDirectory = "bundles/crds"

// schemas makes OpenAPI schemas from Go types.
type schemas struct {
	parser   *crd.Parser
	packages map[string]*loader.Package
	types    *runtime.Scheme
}

// definitions generates one custom resource definition per entry of kinds.yaml, and the kustomization
// that lists them.
func definitions() (files, error) {
	kinds, err := readKinds()
	if err != nil {
		return nil, err
	}
	types, err := load(kinds)
	if err != nil {
		return nil, err
	}
	made := files{}
	kustomization := map[string]any{"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
	var names []string
	for _, k := range kinds {
		definition, err := types.definition(k)
		if err != nil {
			return nil, fmt.Errorf("defining %s: %w", k.Kind, err)
		}
		name := definition.Name + ".yaml"
		content, err := manifest(definition)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", name, err)
		}
		made[filepath.Join(crdDirectory, name)] = content
		names = append(names, name)
	}
	kustomization["resources"] = slices.Sorted(slices.Values(names))
	content, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, fmt.Errorf("writing the kustomization: %w", err)
	}
	made[filepath.Join(crdDirectory, "kustomization.yaml")] = content
	return made, nil
}

// load reads and type-checks the packages that the kinds name.
func load(kinds []kind) (*schemas, error) {
	var paths []string
	for _, k := range kinds {
		for _, v := range k.Versions {
			paths = append(paths, v.Package)
		}
	}
	slices.Sort(paths)
	roots, err := loader.LoadRoots(slices.Compact(paths)...)
	if err != nil {
		return nil, fmt.Errorf("loading the API types: %w", err)
	}
	registry := &markers.Registry{}
	if err := crdmarkers.Register(registry); err != nil {
		return nil, fmt.Errorf("registering markers: %w", err)
	}
	types, err := goTypes()
	if err != nil {
		return nil, err
	}
	s := &schemas{packages: map[string]*loader.Package{}, types: types}
	s.parser = &crd.Parser{
		Collector: &markers.Collector{Registry: registry},
		Checker:   &loader.TypeChecker{NodeFilters: []loader.NodeFilter{crd.Generator{}.CheckFilter()}},
		// Two kinds have numbers with a fraction.
		AllowDangerousTypes: true,
	}
	crd.AddKnownTypes(s.parser)
	for _, root := range roots {
		s.parser.NeedPackage(root)
		s.packages[root.PkgPath] = root
	}
	return s, nil
}

func (s *schemas) definition(k kind) (*apiextensions.CustomResourceDefinition, error) {
	definition := k.envelope()
	for i, v := range k.Versions {
		made, err := k.version(v)
		if err != nil {
			return nil, err
		}
		schema, err := s.schema(v.Package, k.Kind)
		if err != nil {
			return nil, err
		}
		if err := readable(s.types, schema, k, v); err != nil {
			return nil, err
		}
		if err := refine(schema, k); err != nil {
			return nil, err
		}
		if i > 0 {
			withoutDescriptions(schema)
			// The API server refuses equal selectable fields next to schemas that differ.
			made.SelectableFields = nil
		}
		made.Schema = &apiextensions.CustomResourceValidation{OpenAPIV3Schema: schema}
		definition.Spec.Versions = append(definition.Spec.Versions, made)
	}
	return definition, nil
}

func (s *schemas) schema(path, name string) (*apiextensions.JSONSchemaProps, error) {
	root, ok := s.packages[path]
	if !ok {
		return nil, fmt.Errorf("package %s was not found", path)
	}
	id := crd.TypeIdent{Package: root, Name: name}
	s.parser.NeedFlattenedSchemaFor(id)
	// Only what is needed is type-checked, so the rest of a package has type errors.
	if loader.PrintErrors([]*loader.Package{root}, packages.TypeError) {
		return nil, fmt.Errorf("making the schema of %s.%s: see the errors above", path, name)
	}
	schema := s.parser.FlattenedSchemata[id]
	return schema.DeepCopy(), nil
}

// manifest is the definition as YAML, without the status, which is the API server's.
func manifest(definition *apiextensions.CustomResourceDefinition) ([]byte, error) {
	content, err := json.Marshal(definition)
	if err != nil {
		return nil, err
	}
	object := map[string]any{}
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	delete(object, "status")
	return yaml.Marshal(object)
}
