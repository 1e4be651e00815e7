package main

import (
	_ "embed"
	"fmt"
	"maps"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/release"
)

//go:embed kinds.yaml
var kindsYAML []byte

// kind is one entry of kinds.yaml.
type kind struct {
	Group      string            `json:"group"`
	Kind       string            `json:"kind"`
	Plural     string            `json:"plural"`
	Short      []string          `json:"short"`
	Categories []string          `json:"categories"`
	Labels     map[string]string `json:"labels"`
	Cluster    bool              `json:"cluster"`
	Versions   []version         `json:"versions"`
	Status     bool              `json:"status"`
	Scale      bool              `json:"scale"`
	Selectable []string          `json:"selectable"`
	Columns    [][]string        `json:"columns"`
	Rules      []rule            `json:"rules"`
	// Prefers says that a preference may yet fill the machines in objects of this kind.
	Prefers bool `json:"prefers"`
}

type version struct {
	Name       string `json:"name"`
	Package    string `json:"package"`
	Storage    bool   `json:"storage"`
	Deprecated bool   `json:"deprecated"`
}

// rule is a CEL rule on a field of the root.
type rule struct {
	Field   string `json:"field"`
	Rule    string `json:"rule"`
	Message string `json:"message"`
	// Path is the part of the field that is wrong, if it isn't the field itself; Reason is FieldValueInvalid if empty.
	Path   string                              `json:"path"`
	Reason apiextensions.FieldValueErrorReason `json:"reason"`
}

func (r rule) validation() apiextensions.ValidationRule {
	v := apiextensions.ValidationRule{Rule: r.Rule, Message: r.Message, FieldPath: r.Path}
	if r.Reason != "" {
		v.Reason = &r.Reason
	}
	return v
}

func readKinds() ([]kind, error) {
	var kinds []kind
	if err := yaml.UnmarshalStrict(kindsYAML, &kinds); err != nil {
		return nil, fmt.Errorf("reading kinds.yaml: %w", err)
	}
	return kinds, nil
}

// envelope is the definition of k without its versions.
func (k kind) envelope() *apiextensions.CustomResourceDefinition {
	crd := &apiextensions.CustomResourceDefinition{}
	crd.APIVersion = apiextensions.SchemeGroupVersion.String()
	crd.Kind = "CustomResourceDefinition"
	crd.Name = k.Plural + "." + k.Group
	crd.Labels = maps.Clone(k.Labels)
	if crd.Labels == nil {
		crd.Labels = map[string]string{"kubevirt.io": ""}
	}
	crd.Labels[names.Release] = release.Version
	crd.Spec.Group = k.Group
	crd.Spec.Scope = apiextensions.NamespaceScoped
	if k.Cluster {
		crd.Spec.Scope = apiextensions.ClusterScoped
	}
	crd.Spec.Names = apiextensions.CustomResourceDefinitionNames{
		Kind:       k.Kind,
		ListKind:   k.Kind + "List",
		Plural:     k.Plural,
		Singular:   strings.ToLower(k.Kind),
		ShortNames: k.Short,
		Categories: k.Categories,
	}
	return crd
}

// version is one version of k without its schema.
func (k kind) version(v version) (apiextensions.CustomResourceDefinitionVersion, error) {
	made := apiextensions.CustomResourceDefinitionVersion{
		Name: v.Name, Served: true, Storage: v.Storage, Deprecated: v.Deprecated,
	}
	if k.Status || k.Scale {
		made.Subresources = &apiextensions.CustomResourceSubresources{}
	}
	if k.Status {
		made.Subresources.Status = &apiextensions.CustomResourceSubresourceStatus{}
	}
	if k.Scale {
		selector := ".status.labelSelector"
		made.Subresources.Scale = &apiextensions.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: &selector,
		}
	}
	for _, path := range k.Selectable {
		made.SelectableFields = append(made.SelectableFields, apiextensions.SelectableField{JSONPath: path})
	}
	for _, c := range k.Columns {
		column, err := printerColumn(c)
		if err != nil {
			return made, fmt.Errorf("reading columns of %s: %w", k.Kind, err)
		}
		made.AdditionalPrinterColumns = append(made.AdditionalPrinterColumns, column)
	}
	return made, nil
}

func printerColumn(c []string) (apiextensions.CustomResourceColumnDefinition, error) {
	var column apiextensions.CustomResourceColumnDefinition
	if len(c) < 3 || len(c) > 4 {
		return column, fmt.Errorf("%q has %d parts: it must be name, type, path and perhaps priority", c, len(c))
	}
	column.Name, column.Type, column.JSONPath = c[0], c[1], c[2]
	if len(c) == 4 {
		priority, err := strconv.ParseInt(c[3], 10, 32)
		if err != nil {
			return column, fmt.Errorf("reading the priority of column %s: %w", c[0], err)
		}
		column.Priority = int32(priority)
	}
	return column, nil
}
