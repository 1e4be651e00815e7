package bundle

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"virtstack.io/virtstack/api/v1alpha1"
)

func waiting(namespace, name string, on ...string) *v1alpha1.Bundle {
	b := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 2}}
	needing(on...)(&b.Spec)
	return b
}

// Those who wait for a Bundle are woken when it becomes ready or ceases to be, and by nothing else of its status.
func TestWhoWaitsIsWoken(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	base := waiting("ns", "base")
	all := fake.NewClientBuilder().WithScheme(scheme).WithObjects(base, waiting("ns", "a", "base"), waiting("ns", "b", "x", "base"),
		waiting("ns", "c", "x"), waiting("other", "a", "base")).Build()
	var names []string
	for _, r := range dependents(all)(t.Context(), base) {
		names = append(names, r.String())
	}
	if want := []string{"ns/a", "ns/b"}; !slices.Equal(names, want) {
		t.Errorf("woken: %v, want %v", names, want)
	}
	ready := func(status metav1.ConditionStatus, reason string, generation int64) *v1alpha1.Bundle {
		b := base.DeepCopy()
		b.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, ObservedGeneration: generation}}
		return b
	}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.Bundle
		want          bool
	}{
		"becomes ready":      {ready("Unknown", "Progressing", 2), ready("True", "X", 2), true},
		"fails":              {ready("True", "X", 2), ready("False", "BuildFailed", 2), true},
		"stays ready":        {ready("True", "X", 2), ready("True", "Y", 2), false},
		"is not looked at":   {ready("True", "X", 2), ready("True", "X", 1), true},
		"has not been, ever": {base, base, false},
	} {
		if got := readiness().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: woken is %t, want %t", name, got, tc.want)
		}
	}
}
