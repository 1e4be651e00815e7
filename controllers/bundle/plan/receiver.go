package plan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
)

// receiving is the condition of a Bundle with a receiver. It is no part of its health.
const receiving = "Receiving"

// Receiving returns the status with what is said of the receiver; deaf is why it takes no requests.
func Receiving(now time.Time, b *v1alpha1.Bundle, st v1alpha1.BundleStatus, deaf error) v1alpha1.BundleStatus {
	if b.Spec.Receiver == nil || b.DeletionTimestamp != nil || !slices.Contains(b.Finalizers, v1alpha1.BundleFinalizer) {
		return st // not looked at
	}
	w := want{receiving, metav1.ConditionTrue, "TokenRead", "requests are taken at /hook/" + b.Namespace + "/" + b.Name + " of Service virt-bundles-receiver"}
	if deaf != nil {
		w = want{receiving, metav1.ConditionFalse, "TokenUnusable", deaf.Error()}
	}
	st.Conditions = append(st.Conditions, conditions(now, b, w)...)
	return st
}
