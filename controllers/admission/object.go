package admission

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/validate"
)

// object reviews an object by nothing but itself, what it was and the cluster's configuration.
func object(r *admissionv1.AdmissionRequest, c config.Config) (*admissionv1.AdmissionResponse, error) {
	verdict, err := judge(r, c)
	if err != nil {
		return nil, err
	}
	errs, err := jumped(r)
	return answer(r, append(verdict.Errors, errs...), verdict.Warnings...), err
}

// jumped refuses a new migration that says how urgent it is, unless virt-controller makes it.
func jumped(r *admissionv1.AdmissionRequest) (field.ErrorList, error) {
	if r.Kind.Kind != "VirtualMachineInstanceMigration" || r.Operation != admissionv1.Create || r.UserInfo.Username == account("kubevirt-controller") {
		return nil, nil
	}
	m := &v1.VirtualMachineInstanceMigration{}
	if err := decode(r.Object, m); err != nil || m.Spec.Priority == nil {
		return nil, err
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "migrationPriority"), fmt.Sprintf("priority %q is for virt-controller to set: must be left out", *m.Spec.Priority))}, nil
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
