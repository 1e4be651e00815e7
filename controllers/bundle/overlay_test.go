package bundle

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

func TestWhatTheSpecLaysOverIsApplied(t *testing.T) {
	x := start(t)
	x.repo.Commit("apps/a.yaml", settings("a", `"${who}"`))
	x.repo.Commit("apps/p.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{port: 80}]}\n")
	hash := x.repo.Commit("parts/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nconfigMapGenerator: [{name: more, literals: [a=b], options: {disableNameSuffixHash: true}}]\n")
	s := &x.bundle.Spec
	s.Path, s.NamePrefix, s.NameSuffix, s.Components = "apps", "pre-", "-post", []string{"../parts", "../gone"}
	s.IgnoreMissingComponents = true
	s.Patches = []kustomize.Patch{{Target: &kustomize.Selector{Kind: "Service"}, Patch: "- {op: replace, path: /spec/ports/0/port, value: 8080}"}}
	s.CommonMetadata = &v1alpha1.CommonMetadata{Labels: map[string]string{"team": "red"}, Annotations: map[string]string{"note": "x"}}
	s.PostBuild = &v1alpha1.PostBuild{Substitute: map[string]string{"who": "me"}}
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+hash)
	var m corev1.ConfigMap
	if !x.exists(&m, "pre-a-post") || m.Data["value"] != "me" || m.Labels["team"] != "red" || m.Annotations["note"] != "x" {
		t.Errorf("a: %v %v %v", m.Data, m.Labels, m.Annotations)
	}
	var svc corev1.Service
	if !x.exists(&svc, "pre-s-post") || svc.Spec.Ports[0].Port != 8080 || !x.exists(&m, "pre-more-post") {
		t.Errorf("the patched Service: %v", svc.Spec.Ports)
	}
	x.writes.Store(0)
	x.now = x.now.Add(10 * time.Minute)
	if x.settle(); x.writes.Load() != 0 {
		t.Errorf("a second sync wrote %d times", x.writes.Load())
	}
	x.change(func(s *v1alpha1.BundleSpec) { s.Patches[0].Patch = "{a: [x" })
	x.failed(x.settle(), "BuildFailed", hash, "spec.patches[0]: yaml: line 1")
	x.change(func(s *v1alpha1.BundleSpec) { s.Patches, s.Components = nil, []string{"../../up"} })
	x.failed(x.settle(), "BuildFailed", `spec.components[0]: "../../up" leads out of the repository`)
}

// Variables come from ConfigMaps and Secrets that the account can read; a change of theirs is a change of the Bundle.
func TestVariablesAreRead(t *testing.T) {
	x := start(t)
	hash := x.repo.Commit("a.yaml", settings("a", `"${one}-${two}-${three}"`))
	x.bundle.Spec.PostBuild = &v1alpha1.PostBuild{Strict: true, Substitute: map[string]string{"three": "3"}, SubstituteFrom: []v1alpha1.SubstituteReference{
		{Kind: "ConfigMap", Name: "values"}, {Kind: "Secret", Name: "secrets"}, {Kind: "Secret", Name: "none", Optional: true},
	}}
	x.create(x.bundle)
	b := x.settle()
	x.failed(b, "BuildFailed", "spec.postBuild.substituteFrom[0]: reading ConfigMap values", "not found")
	if status, _, _ := condition(b, "Stalled"); status == metav1.ConditionTrue {
		t.Error("variables that may come yet make it stall")
	}
	values := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "values"}, Data: map[string]string{"one": "1", "three": "0"}}
	secrets := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "secrets"}, StringData: map[string]string{"other": "canary-1"}}
	x.create(values)
	x.create(secrets)
	x.failed(x.settle(), "BuildFailed", hash, "ConfigMap a (a.yaml)", `variable "two" has no value`)
	secrets.StringData = map[string]string{"two": "*canary-2 ["}
	x.update(secrets)
	x.repo.Commit("a.yaml", settings("a", `"${two}"`))
	x.failed(x.settle(), "BuildFailed", "values that may be secret")
	hash = x.repo.Commit("a.yaml", settings("a", `"${one}-${two}-${three}"`))
	secrets.StringData = map[string]string{"two": "2\n"}
	x.update(secrets)
	x.ready(x.settle(), "main@sha1:"+hash)
	x.holds("a", "1-2-3")
	values.Data["one"] = "one"
	x.update(values)
	x.now = x.now.Add(10 * time.Minute)
	x.ready(x.settle(), "main@sha1:"+hash)
	x.holds("a", "one-2-3")
	x.repo.Write("b.yaml", settings("b", "b"))
	hash = x.repo.Commit("a.yaml", settings("a", `"${one} ${two}"`))
	x.round() // what is to be applied is written down
	x.round() // and applied
	x.holds("a", "one 2")
	values.Data["one"] = "another"
	x.update(values)
	x.ready(x.settle(), "main@sha1:"+hash)
	x.holds("a", "another 2")
	x.change(func(s *v1alpha1.BundleSpec) { s.ServiceAccountName = "nobody" })
	b = x.settle()
	x.failed(b, "BuildFailed", "reading ConfigMap values", "forbidden")
	if _, _, message := condition(b, "Ready"); strings.Contains(message, "canary") {
		t.Error(message)
	}
	x.quiet("variables")
}

// holds checks the value of a ConfigMap.
func (x *tenant) holds(name, value string) {
	x.t.Helper()
	var m corev1.ConfigMap
	if x.exists(&m, name); m.Data["value"] != value {
		x.t.Errorf("%s has %q, want %q", name, m.Data["value"], value)
	}
}
