package render

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// IsRole tells whether an object grants rights by rules of its own.
func IsRole(u *unstructured.Unstructured) bool {
	_, aggregates := u.Object["aggregationRule"]
	return (u.GetKind() == "Role" || u.GetKind() == "ClusterRole") && !aggregates
}

// Widened returns a role that grants what wanted does and what live, nil for none, has granted so far: programs of the
// version that live was made for still run.
func Widened(wanted, live *unstructured.Unstructured) *unstructured.Unstructured {
	if live == nil {
		return wanted
	}
	w := wanted.DeepCopy()
	rules, _ := w.Object["rules"].([]any)
	had, _ := live.Object["rules"].([]any)
	for _, r := range had {
		if !slices.ContainsFunc(rules, func(o any) bool { return reflect.DeepEqual(o, r) }) {
			rules = append(rules, r)
		}
	}
	w.Object["rules"] = rules
	return w
}

// IsWebhooks tells whether an object registers webhooks.
func IsWebhooks(kind string) bool {
	return kind == "ValidatingWebhookConfiguration" || kind == "MutatingWebhookConfiguration"
}

// Withdrawn returns live without the webhooks that wanted, nil for no such object, doesn't have at the same place, and
// nil where it has them all. Of its labels it has those whose keys are ours: the others are somebody else's to keep.
func Withdrawn(wanted, live *unstructured.Unstructured, ours []string) *unstructured.Unstructured {
	served := map[[2]string]bool{}
	for _, h := range hooks(wanted) {
		served[placeOf(h)] = true
	}
	all := hooks(live)
	left := slices.DeleteFunc(slices.Clone(all), func(h any) bool { return !served[placeOf(h)] })
	if len(left) == len(all) {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{"webhooks": left}}
	u.SetGroupVersionKind(live.GroupVersionKind())
	u.SetName(live.GetName())
	labels := maps.Clone(live.GetLabels())
	maps.DeleteFunc(labels, func(key, _ string) bool { return !slices.Contains(ours, key) })
	u.SetLabels(labels)
	return u
}

func hooks(u *unstructured.Unstructured) []any {
	if u == nil {
		return nil
	}
	all, _ := u.Object["webhooks"].([]any)
	return all
}

// placeOf is a webhook's name and where its server is asked.
func placeOf(hook any) [2]string {
	h, _ := hook.(map[string]any)
	name, _, _ := unstructured.NestedString(h, "name")
	path, _, _ := unstructured.NestedString(h, "clientConfig", "service", "path")
	return [2]string{name, path}
}
