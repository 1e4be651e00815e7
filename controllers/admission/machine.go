package admission

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/validate"
)

const runningDeprecated = "spec.running is deprecated, please use spec.runStrategy instead."

// machine reviews a VirtualMachine. A change that leaves the spec alone always passes, and so does every
// change of a machine that is being deleted: rules are for what is asked for, not for letting go.
func machine(r *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	vm, old := &v1.VirtualMachine{}, &v1.VirtualMachine{}
	if err := decode(r.Object, vm); err != nil {
		return nil, err
	}
	if vm.DeletionTimestamp != nil {
		return allowed(), nil
	}
	if r.Operation == admissionv1.Update {
		// One that does not fit its type may be repaired: it differs from the new one.
		if err := decode(r.OldObject, old); err == nil && equality.Semantic.DeepEqual(old.Spec, vm.Spec) {
			return allowed(), nil
		}
	}
	var warnings []string
	if vm.Spec.Running != nil {
		warnings = append(warnings, runningDeprecated)
	}
	errs := validate.VM(vm)
	if vm.Spec.Template != nil {
		path := field.NewPath("spec", "template", "metadata", "labels")
		errs = append(errs, changed(path, nil, vm.Spec.Template.ObjectMeta.Labels)...)
	}
	return answer(r, errs, warnings...), nil
}

func decode(raw runtime.RawExtension, into any) error {
	if err := json.Unmarshal(raw.Raw, into); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	return nil
}
