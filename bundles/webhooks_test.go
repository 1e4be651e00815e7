package bundles_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// needed are the webhooks without whose answer nothing is written.
func needed(t *testing.T) []admissionv1.ValidatingWebhook {
	t.Helper()
	var out []admissionv1.ValidatingWebhook
	for _, o := range built(t, "bundles/components") {
		// What is asked about here is spelled alike in both kinds.
		if o.GetKind() != "ValidatingWebhookConfiguration" && o.GetKind() != "MutatingWebhookConfiguration" {
			continue
		}
		var c admissionv1.ValidatingWebhookConfiguration
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &c); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.Webhooks {
			if w.FailurePolicy == nil || *w.FailurePolicy == admissionv1.Fail {
				out = append(out, w)
			}
		}
	}
	if len(out) == 0 {
		t.Fatal("no webhook is needed for anything: the test looks at nothing")
	}
	return out
}

// asked evaluates the conditions under which a webhook is asked.
func asked(t *testing.T, w admissionv1.ValidatingWebhook, before, after map[string]any) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]any{"userInfo": map[string]any{"username": "system:serviceaccount:kube-system:generic-garbage-collector"}}
	for _, c := range w.MatchConditions {
		ast, issues := env.Compile(c.Expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", w.Name, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := program.Eval(map[string]any{"object": after, "oldObject": before, "request": by})
		if err != nil {
			t.Fatalf("%s: %v", w.Name, err)
		}
		if got.Value() == false {
			return false
		}
	}
	return true
}

// Whatever is away, an object can be deleted, and what keeps a deleted one can be taken off it. Source:
// kubevirt/kubevirt#1491.
func TestNothingThatDeletesNeedsAServer(t *testing.T) {
	object := func(changes map[string]any) map[string]any {
		metadata := map[string]any{"name": "web", "labels": map[string]any{"a": "b"}, "finalizers": []any{"foregroundDeletion", "kubevirt.io/x"}, "ownerReferences": []any{}}
		maps.Copy(metadata, changes)
		return map[string]any{"metadata": metadata, "spec": map[string]any{"runStrategy": "Always"}}
	}
	going := object(map[string]any{"deletionTimestamp": "2026-12-02T08:00:00Z"})
	for _, w := range needed(t) {
		changes := false
		for _, r := range w.Rules {
			if slices.ContainsFunc(r.Operations, func(o admissionv1.OperationType) bool { return o != admissionv1.Create && o != admissionv1.Update }) {
				t.Errorf("%s: %s of %v waits for a server", w.Name, r.Operations, r.Resources)
			}
			changes = changes || slices.Contains(r.Operations, admissionv1.Update)
		}
		if !changes {
			continue
		}
		for name, after := range map[string]map[string]any{
			"a finalizer is taken off": object(map[string]any{"deletionTimestamp": "2026-12-02T08:00:00Z", "finalizers": []any{}}),
			"an owner is taken off":    object(map[string]any{"deletionTimestamp": "2026-12-02T08:00:00Z", "ownerReferences": []any{map[string]any{"name": "x"}}}),
		} {
			if asked(t, w, going, after) {
				t.Errorf("%s is asked when %s", w.Name, name)
			}
		}
		changed := object(nil)
		changed["spec"] = map[string]any{"runStrategy": "Halted"}
		if !asked(t, w, object(nil), changed) {
			t.Errorf("%s isn't asked when a spec is changed", w.Name)
		}
	}
}
