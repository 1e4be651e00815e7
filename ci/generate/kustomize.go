package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

const mergeKeysFile = "bundles/kustomize/merge-keys.json"

// document is the part of an OpenAPI document that kustomize reads.
type document struct {
	Definitions map[string]*node     `json:"definitions"`
	Paths       map[string]operation `json:"paths"`
}

// node is a schema of which nothing is left but the way to lists that are merged.
type node struct {
	Type       string              `json:"type,omitempty"`
	Properties map[string]*node    `json:"properties,omitempty"`
	Items      *node               `json:"items,omitempty"`
	Strategy   string              `json:"x-kubernetes-patch-strategy,omitempty"`
	Key        string              `json:"x-kubernetes-patch-merge-key,omitempty"`
	Known      []map[string]string `json:"x-kubernetes-group-version-kind,omitempty"`
}

type operation struct {
	Get struct {
		Kind map[string]string `json:"x-kubernetes-group-version-kind"`
	} `json:"get"`
}

// workloads are kinds of Kubernetes whose lists go on being merged: a document that is given to kustomize stands in for
// all that it knows itself.
var workloads = map[schema.GroupVersionKind]any{
	corev1.SchemeGroupVersion.WithKind("Pod"):                                             corev1.Pod{},
	corev1.SchemeGroupVersion.WithKind("Service"):                                         corev1.Service{},
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"):                                  corev1.ServiceAccount{},
	appsv1.SchemeGroupVersion.WithKind("Deployment"):                                      appsv1.Deployment{},
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"):                                     appsv1.StatefulSet{},
	appsv1.SchemeGroupVersion.WithKind("DaemonSet"):                                       appsv1.DaemonSet{},
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"):                                      appsv1.ReplicaSet{},
	batchv1.SchemeGroupVersion.WithKind("Job"):                                            batchv1.Job{},
	batchv1.SchemeGroupVersion.WithKind("CronJob"):                                        batchv1.CronJob{},
	networkingv1.SchemeGroupVersion.WithKind("Ingress"):                                   networkingv1.Ingress{},
	admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"): admissionregistrationv1.ValidatingWebhookConfiguration{},
	admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"):   admissionregistrationv1.MutatingWebhookConfiguration{},
}

// mergeKeys returns the OpenAPI document by which kustomize merges lists of our kinds by name, instead of replacing them,
// and knows which of them have no namespace.
func mergeKeys(made files) (files, error) {
	doc := document{map[string]*node{}, map[string]operation{}}
	for kind, object := range workloads {
		doc.define(kind, ofType(reflect.TypeOf(object), nil))
	}
	for path, content := range made {
		if filepath.Dir(path) != crdDirectory || filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		crd := &apiextensions.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		for _, v := range crd.Spec.Versions {
			kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
			doc.define(kind, ofSchema(v.Schema.OpenAPIV3Schema))
			doc.place(kind, crd.Spec.Names.Plural, crd.Spec.Scope)
		}
	}
	content, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", mergeKeysFile, err)
	}
	return files{mergeKeysFile: append(content, '\n')}, nil
}

func kindOf(kind schema.GroupVersionKind) map[string]string {
	return map[string]string{"group": kind.Group, "version": kind.Version, "kind": kind.Kind}
}

func (d document) define(kind schema.GroupVersionKind, n *node) {
	if n == nil {
		n = &node{Type: "object"}
	}
	n.Known = []map[string]string{kindOf(kind)}
	d.Definitions[strings.Join([]string{kind.Group, kind.Version, kind.Kind}, ".")] = n
}

func (d document) place(kind schema.GroupVersionKind, plural string, scope apiextensions.ResourceScope) {
	where := ""
	if scope == apiextensions.NamespaceScoped {
		where = "namespaces/{namespace}/"
	}
	var o operation
	o.Get.Kind = kindOf(kind)
	d.Paths["/apis/"+kind.Group+"/"+kind.Version+"/"+where+plural+"/{name}"] = o
}

// ofType returns the way to merged lists of a Go type, as its patchStrategy tags say; nil if there is none.
func ofType(t reflect.Type, within []reflect.Type) *node {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(within, t) {
		return nil
	}
	found := map[string]*node{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if n := ofField(f, append(within, t)); n != nil && name != "" && name != "-" {
			found[name] = n
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &node{Type: "object", Properties: found}
}

func ofField(f reflect.StructField, within []reflect.Type) *node {
	if f.Type.Kind() != reflect.Slice {
		return ofType(f.Type, within)
	}
	items, strategy := ofType(f.Type.Elem(), within), f.Tag.Get("patchStrategy")
	if items == nil && strategy == "" {
		return nil
	}
	if items == nil {
		items = &node{Type: "object"}
		if f.Type.Elem().Kind() != reflect.Struct {
			items.Type = "string"
		}
	}
	return &node{Type: "array", Items: items, Strategy: strategy, Key: f.Tag.Get("patchMergeKey")}
}

// ofSchema returns the way to lists that are maps of one key; nil if there is none.
func ofSchema(s *apiextensions.JSONSchemaProps) *node {
	if s.Type == "array" {
		return ofList(s)
	}
	found := map[string]*node{}
	for name := range s.Properties {
		p := s.Properties[name]
		if n := ofSchema(&p); n != nil {
			found[name] = n
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &node{Type: "object", Properties: found}
}

func ofList(s *apiextensions.JSONSchemaProps) *node {
	if s.Items == nil || s.Items.Schema == nil {
		return nil
	}
	items := ofSchema(s.Items.Schema)
	merged := s.XListType != nil && *s.XListType == "map" && len(s.XListMapKeys) == 1
	if items == nil && !merged {
		return nil
	}
	if items == nil {
		items = &node{Type: "object"}
	}
	n := &node{Type: "array", Items: items}
	if merged {
		n.Strategy, n.Key = "merge", s.XListMapKeys[0]
	}
	return n
}
