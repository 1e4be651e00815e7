package admission

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/validate"
)

// object reviews an object by nothing but itself, what it was and the cluster's configuration.
func object(r *admissionv1.AdmissionRequest, c config.Config) (*admissionv1.AdmissionResponse, error) {
	verdict, err := judge(r, c)
	if err != nil {
		return nil, err
	}
	return answer(r, verdict.Errors, verdict.Warnings...), nil
}

func judge(r *admissionv1.AdmissionRequest, c config.Config) (validate.Verdict, error) {
	var old []byte
	if r.Operation == admissionv1.Update {
		old = r.OldObject.Raw
	}
	return validate.Object(schema.GroupKind{Group: r.Kind.Group, Kind: r.Kind.Kind}, r.Object.Raw, old, c)
}

func decode(raw runtime.RawExtension, into any) error {
	if err := json.Unmarshal(raw.Raw, into); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	return nil
}
