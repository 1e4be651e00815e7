package admission

import (
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxMessages is how many errors the message of an answer repeats.
	maxMessages = 10
	// maxCauses is how many errors an answer lists.
	maxCauses = 100
)

func allowed(warnings ...string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true, Warnings: warnings}
}

// answer allows where there are no errors. Else it refuses as the API server does for its own kinds: 422, a
// cause for each error, and the first few of them in the message.
func answer(r *admissionv1.AdmissionRequest, errs field.ErrorList, warnings ...string) *admissionv1.AdmissionResponse {
	if len(errs) == 0 {
		return allowed(warnings...)
	}
	var messages []string
	var causes []metav1.StatusCause
	for i, err := range errs {
		if i < maxMessages {
			messages = append(messages, err.Error())
		}
		if i < maxCauses {
			causes = append(causes, metav1.StatusCause{
				Type: metav1.CauseType(err.Type), Message: err.ErrorBody(), Field: err.Field,
			})
		}
	}
	message := strings.Join(messages, ", ")
	if more := len(errs) - maxMessages; more > 0 {
		message += fmt.Sprintf(", and %d more validation errors", more)
	}
	return &admissionv1.AdmissionResponse{Warnings: warnings, Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: message,
		Details: &metav1.StatusDetails{Group: r.Kind.Group, Kind: r.Kind.Kind, Name: r.Name, Causes: causes},
	}}
}

// unreadable refuses an object that does not fit its Go type.
func unreadable(err error) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusBadRequest, Reason: metav1.StatusReasonBadRequest,
		Message: err.Error(),
	}}
}
