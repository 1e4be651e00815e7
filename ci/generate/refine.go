package main

import (
	"fmt"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
)

// nameLength is the most characters of a disk, volume, network or interface name. Without a limit
// the API server takes each name for a megabyte when it estimates what CEL rules cost.
const nameLength = int64(63)

// each calls a function on every node of a schema, parents first.
type each func(*apiextensions.JSONSchemaProps)

// Visit implements crd.SchemaVisitor.
func (e each) Visit(schema *apiextensions.JSONSchemaProps) crd.SchemaVisitor {
	if schema != nil {
		e(schema)
	}
	return e
}

// refine adds to the schema of a kind what its Go type cannot say.
func refine(schema *apiextensions.JSONSchemaProps, k kind) error {
	crd.EditSchema(schema, each(keepMetadata))
	crd.EditSchema(schema, each(keyLists))
	crd.EditSchema(schema, each(fromOne))
	crd.EditSchema(schema, each(boundQuantities))
	crd.EditSchema(schema, each(func(node *apiextensions.JSONSchemaProps) { unite(node, k) }))
	schema.Properties["metadata"] = apiextensions.JSONSchemaProps{Type: "object"}
	if status, ok := schema.Properties["status"]; ok {
		schema.Required = slices.DeleteFunc(schema.Required, func(name string) bool { return name == "status" })
		if err := refineStatus(&status); err != nil {
			return err
		}
		schema.Properties["status"] = status
	}
	for _, r := range k.Rules {
		field, ok := schema.Properties[r.Field]
		if !ok {
			return fmt.Errorf("rule %q is on field %s, which does not exist", r.Rule, r.Field)
		}
		field.XValidations = append(field.XValidations, r.validation())
		schema.Properties[r.Field] = field
	}
	return nil
}

// A quantity is read in a time that grows with the square of its exponent: one of ten digits keeps every component busy
// for ever. No amount needs more than two.
const (
	anyExponent    = `([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+)))`
	smallExponent  = `([eE](\+|-)?[0-9]{1,2})`
	quantityLength = int64(64)
)

// boundQuantities makes a schema refuse quantities that take long to read.
func boundQuantities(schema *apiextensions.JSONSchemaProps) {
	if !schema.XIntOrString || !strings.Contains(schema.Pattern, anyExponent) {
		return
	}
	length := quantityLength
	schema.Pattern, schema.MaxLength = strings.Replace(schema.Pattern, anyExponent, smallExponent, 1), &length
}

// keepMetadata keeps the labels, annotations and names of objects that are embedded in others (templates).
func keepMetadata(schema *apiextensions.JSONSchemaProps) {
	metadata, ok := schema.Properties["metadata"]
	if !ok || metadata.Type != "object" || len(metadata.Properties) > 0 {
		return
	}
	keep := true
	metadata.XPreserveUnknownFields = &keep
	metadata.Description = ""
	schema.Properties["metadata"] = metadata
}

// keyLists makes the lists of a machine's parts maps keyed by name, wherever a machine is embedded, so
// that two field managers can own different entries of one list.
func keyLists(schema *apiextensions.JSONSchemaProps) {
	devices := has(schema, "disks", "interfaces")
	machine := has(schema, "domain", "volumes", "networks")
	switch {
	case devices:
		keyBy(schema, "disks", "name")
		keyBy(schema, "interfaces", "name")
	case machine:
		keyBy(schema, "volumes", "name")
		keyBy(schema, "networks", "name")
	default:
		return
	}
	for _, list := range []string{"disks", "interfaces", "volumes", "networks"} {
		limitName(schema, list)
	}
}

// fromOne gives the numbers that start at 1 that minimum: a Go client cannot tell 0 from absent.
func fromOne(schema *apiextensions.JSONSchemaProps) {
	var names []string
	switch {
	case has(schema, "bootOrder", "name"):
		names = []string{"bootOrder"}
	case has(schema, "sockets", "dedicatedCpuPlacement"):
		names = []string{"sockets", "cores", "threads"}
	}
	for _, name := range names {
		least := 1.0
		number := schema.Properties[name]
		number.Minimum = &least
		schema.Properties[name] = number
	}
}

func refineStatus(status *apiextensions.JSONSchemaProps) error {
	if has(status, "conditions") {
		keyBy(status, "conditions", "type")
	}
	if has(status, "volumeStatus", "nodeName") {
		keyBy(status, "volumeStatus", "name")
		// One controller writes an entry before another knows its target.
		status.Properties["volumeStatus"].Items.Schema.Required = []string{"name"}
	}
	if !has(status, "observedGeneration") {
		return nil
	}
	if len(status.Required) > 0 {
		return fmt.Errorf("status has a default and requires %v, which the default does not give", status.Required)
	}
	// kstatus takes an object without status for one that is done.
	status.Default = &apiextensions.JSON{Raw: []byte(`{"observedGeneration":-1}`)}
	return nil
}

func has(schema *apiextensions.JSONSchemaProps, names ...string) bool {
	for _, name := range names {
		if _, ok := schema.Properties[name]; !ok {
			return false
		}
	}
	return true
}

// keyBy makes the property a list that is a map with the given key, which entries must then have.
func keyBy(schema *apiextensions.JSONSchemaProps, property, key string) {
	list := schema.Properties[property]
	if list.Items == nil || list.Items.Schema == nil || !has(list.Items.Schema, key) {
		return
	}
	kind := "map"
	list.XListType = &kind
	list.XListMapKeys = []string{key}
	entry := list.Items.Schema
	if !slices.Contains(entry.Required, key) {
		entry.Required = slices.Sorted(slices.Values(append(entry.Required, key)))
	}
	schema.Properties[property] = list
}

func limitName(schema *apiextensions.JSONSchemaProps, property string) {
	list, ok := schema.Properties[property]
	if !ok || list.Items == nil || list.Items.Schema == nil {
		return
	}
	length := nameLength
	name := list.Items.Schema.Properties["name"]
	name.MaxLength = &length
	list.Items.Schema.Properties["name"] = name
}

// withoutDescriptions drops what only a reader of the newest version needs.
func withoutDescriptions(schema *apiextensions.JSONSchemaProps) {
	crd.EditSchema(schema, each(func(node *apiextensions.JSONSchemaProps) { node.Description = "" }))
}
