package render_test

import (
	"encoding/base64"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/bundles"
	"virtstack.io/virtstack/controllers/operator/render"
)

var settings = render.Settings{
	Images:   render.Images{Component: "registry.example.test:5000/a/virtstack:1", Launcher: "localhost/virt-launcher@sha256:abc"},
	Nodes:    1,
	CABundle: []byte("CA"),
	Labels:   map[string]string{"owner": "o"},
}

func small() fs.FS {
	return fstest.MapFS{
		"kustomization.yaml": {Data: []byte("resources: [all.yaml]\n")},
		"images.yaml":        {Data: []byte("images: [{path: 'spec/template/spec/containers[]/env[]/value', kind: Deployment}]\n")},
		"all.yaml": {Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata: {name: virt-controller}
spec:
  replicas: 7
  template:
    spec:
      tolerations: [{key: own}]
      containers:
      - {name: c, image: virtstack, env: [{name: I, value: virt-launcher}, {name: O, value: other}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: virt-api}
spec: {replicas: 7, template: {spec: {containers: [{name: c, image: virtstack}]}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: virt-handler}
spec: {template: {spec: {initContainers: [{name: i, image: virt-launcher}], containers: [{name: c, image: virtstack}]}}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.subresources.kubevirt.io}
spec: {group: subresources.kubevirt.io}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: w}
webhooks: [{name: a.example.test, clientConfig: {service: {name: s, namespace: n}}}]
`)},
	}
}

func find(t *testing.T, b render.Bundle, kind, name string) map[string]any {
	t.Helper()
	for _, o := range b.Objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o.Object
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return nil
}

func dig(o any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			o = o.(map[string]any)[p]
		case int:
			o = o.([]any)[p]
		}
	}
	return o
}

func TestSettingsReachTheObjects(t *testing.T) {
	b, err := render.Components(small(), &v1.KubeVirt{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	controller, handler := find(t, b, "Deployment", "virt-controller"), find(t, b, "DaemonSet", "virt-handler")
	ca := base64.StdEncoding.EncodeToString([]byte("CA"))
	for name, tc := range map[string]struct{ got, want any }{
		"component":            {dig(controller, "spec", "template", "spec", "containers", 0, "image"), "registry.example.test:5000/a/virtstack:1"},
		"launcher by env":      {dig(controller, "spec", "template", "spec", "containers", 0, "env", 0, "value"), "localhost/virt-launcher@sha256:abc"},
		"another env":          {dig(controller, "spec", "template", "spec", "containers", 0, "env", 1, "value"), "other"},
		"launcher as image":    {dig(handler, "spec", "template", "spec", "initContainers", 0, "image"), "localhost/virt-launcher@sha256:abc"},
		"replicas":             {dig(controller, "spec", "replicas"), int64(1)},
		"label":                {dig(controller, "metadata", "labels", "owner"), "o"},
		"no label on Pods":     {dig(controller, "spec", "template", "metadata"), nil},
		"trust of API service": {dig(find(t, b, "APIService", "v1.subresources.kubevirt.io"), "spec", "caBundle"), ca},
		"trust of webhook":     {dig(find(t, b, "ValidatingWebhookConfiguration", "w"), "webhooks", 0, "clientConfig", "caBundle"), ca},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %v, want %v", name, tc.got, tc.want)
		}
	}
}

func TestKubeVirtDecidesPlacementAndImages(t *testing.T) {
	replicas := uint8(3)
	kv := &v1.KubeVirt{Spec: v1.KubeVirtSpec{
		ImageRegistry: "mirror.example.test/x", ImageTag: "v2", ImagePullPolicy: "Always",
		Infra: &v1.ComponentConfig{Replicas: &replicas, NodePlacement: &v1.NodePlacement{NodeSelector: map[string]string{"infra": ""}}},
	}}
	b, err := render.Components(small(), kv, settings)
	if err != nil {
		t.Fatal(err)
	}
	pod := dig(find(t, b, "Deployment", "virt-controller"), "spec", "template", "spec")
	if got := dig(pod, "containers", 0, "image"); got != "mirror.example.test/x/virtstack:v2" {
		t.Errorf("image: got %v", got)
	}
	if got := dig(pod, "containers", 0, "imagePullPolicy"); got != "Always" {
		t.Errorf("pull policy: got %v", got)
	}
	if _, ok := dig(pod, "nodeSelector").(map[string]any)["infra"]; !ok {
		t.Errorf("node selector: got %v", dig(pod, "nodeSelector"))
	}
	if got := dig(pod, "tolerations", 0, "key"); got != "own" {
		t.Errorf("own toleration: got %v", got)
	}
	if dig(find(t, b, "DaemonSet", "virt-handler"), "spec", "template", "spec", "nodeSelector") != nil {
		t.Error("node agents follow the placement of the control plane")
	}
}

// A rotation of the CA is no new deployment; another image is.
func TestIDIsThatOfWhatRuns(t *testing.T) {
	id := func(change func(*render.Settings)) string {
		s := settings
		change(&s)
		b, err := render.Components(small(), &v1.KubeVirt{}, s)
		if err != nil {
			t.Fatal(err)
		}
		return b.ID
	}
	same := id(func(*render.Settings) {})
	if got := id(func(s *render.Settings) { s.CABundle = []byte("other") }); got != same {
		t.Error("the ID changes with the CA bundle")
	}
	if got := id(func(s *render.Settings) { s.Images.Component = "virtstack:2" }); got == same {
		t.Error("the ID is the same for another image")
	}
}

// What the embedded bundle holds is what the operator's role lets it write, and nothing is left unrendered.
func TestEmbeddedBundle(t *testing.T) {
	b, err := render.Components(bundles.Components(), &v1.KubeVirt{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	namespaced := []string{"Deployment", "DaemonSet", "Service", "ServiceAccount", "Role", "RoleBinding", "PodDisruptionBudget", "NetworkPolicy", "ConfigMap"}
	cluster := []string{
		"ClusterRole", "ClusterRoleBinding", "PriorityClass", "APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
	}
	for _, o := range b.Objects {
		switch {
		case slices.Contains(cluster, o.GetKind()):
		case !slices.Contains(namespaced, o.GetKind()):
			t.Errorf("%s %s: the operator's role has no such kind", o.GetKind(), o.GetName())
		case o.GetNamespace() != "kubevirt":
			t.Errorf("%s %s/%s: the operator writes in its own namespace only", o.GetKind(), o.GetNamespace(), o.GetName())
		}
	}
	for _, workload := range [][2]string{{"DaemonSet", "virt-handler"}, {"Deployment", "virt-controller"}, {"Deployment", "virt-api"}} {
		find(t, b, workload[0], workload[1])
	}
}
