package render_test

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/operator/render"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func shown(t *testing.T, u *unstructured.Unstructured, field string) string {
	t.Helper()
	if u == nil {
		return "none"
	}
	text, err := yaml.Marshal(u.Object[field])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n"

func TestARoleGrantsWhatBothVersionsNeed(t *testing.T) {
	wanted := object(t, role+"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]")
	live := object(t, role+"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: [''], resources: [nodes], verbs: [list]}]")
	before := shown(t, live, "rules")
	wide := render.Widened(wanted, live)
	if got := shown(t, wide, "rules"); got != before {
		t.Errorf("widened to\n%s", got)
	}
	if again := render.Widened(wanted, wide); shown(t, again, "rules") != before || len(wanted.Object["rules"].([]any)) != 1 {
		t.Errorf("widened again to\n%s", shown(t, again, "rules"))
	}
	if render.Widened(wanted, nil) != wanted {
		t.Error("a role that isn't there yet was changed")
	}
	if render.IsRole(object(t, role+"aggregationRule: {}")) || !render.IsRole(wanted) {
		t.Error("only roles with rules of their own are widened")
	}
}

const config = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: w, labels: {a: b, theirs: c}}\n"

func TestWebhooksThatAreNotServedAreWithdrawn(t *testing.T) {
	hook := func(name, path string) string {
		return "{name: " + name + ", clientConfig: {service: {path: " + path + "}}}"
	}
	live := object(t, config+"webhooks: ["+hook("stays", "/a")+", "+hook("moved", "/b")+", "+hook("gone", "/c")+"]")
	wanted := object(t, config+"webhooks: ["+hook("stays", "/a")+", "+hook("moved", "/d")+", "+hook("new", "/e")+"]")
	ours := []string{"a", "gone"}
	got := render.Withdrawn(wanted, live, ours)
	if want := "- clientConfig:\n    service:\n      path: /a\n  name: stays\n"; shown(t, got, "webhooks") != want || !maps.Equal(got.GetLabels(), map[string]string{"a": "b"}) {
		t.Errorf("left: %v", got)
	}
	if got := render.Withdrawn(nil, live, ours); shown(t, got, "webhooks") != "[]\n" {
		t.Errorf("of a configuration that goes, this is left: %v", got)
	}
	if again := render.Withdrawn(wanted, got, ours); again != nil {
		t.Errorf("withdrawn once more: %v", again)
	}
}
