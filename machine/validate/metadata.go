package validate

import (
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"virtstack.io/virtstack/machine/names"
)

// metadata wants labels and annotations that the machine's VMI and Pod can have: the API server looks at those of the
// objects that it stores, not at a template's.
func metadata(path *field.Path, m metav1.ObjectMeta) field.ErrorList {
	return append(ordered(metav1validation.ValidateLabels(m.Labels, path.Child("labels"))),
		ordered(apivalidation.ValidateAnnotations(m.Annotations, path.Child("annotations")))...)
}

// untracked names the labels and annotations of a template that its VMI and Pod don't get, as Git tools track by them what
// they have applied.
func untracked(path *field.Path, m metav1.ObjectMeta) (warnings []string) {
	for _, of := range []struct {
		field string
		keys  map[string]string
	}{{"labels", m.Labels}, {"annotations", m.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(of.keys)) {
			if names.Tracking(key) {
				warnings = append(warnings, path.Child(of.field).Key(key).String()+" is not copied to the instance and its Pod, which a Git tool "+
					"would take for its own and prune: select them by another label")
			}
		}
	}
	return warnings
}

// ordered sorts what comes from walking a map.
func ordered(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}
