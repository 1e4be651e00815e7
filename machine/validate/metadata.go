package validate

import (
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// metadata wants labels and annotations that the machine's VMI and Pod can have: the API server looks at those of the
// objects that it stores, not at a template's.
func metadata(path *field.Path, m metav1.ObjectMeta) field.ErrorList {
	return append(ordered(metav1validation.ValidateLabels(m.Labels, path.Child("labels"))),
		ordered(apivalidation.ValidateAnnotations(m.Annotations, path.Child("annotations")))...)
}

// ordered sorts what comes from walking a map.
func ordered(errs field.ErrorList) field.ErrorList {
	slices.SortStableFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return errs
}
