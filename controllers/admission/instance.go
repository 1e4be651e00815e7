package admission

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/validate"
)

var (
	// changers may change the spec of an instance: live changes are virt-controller's, hotplug verbs virt-api's.
	changers = []string{account("kubevirt-controller"), account("kubevirt-apiserver")}
	// labelers may set the labels that place an instance.
	labelers = append([]string{account("kubevirt-handler")}, changers...)
)

func account(name string) string {
	return "system:serviceaccount:" + names.Namespace + ":" + name
}

// instance reviews a VirtualMachineInstance: what it is, and whether the user may change what changes.
func instance(r *admissionv1.AdmissionRequest, c config.Config) (*admissionv1.AdmissionResponse, error) {
	vmi, old := &v1.VirtualMachineInstance{}, &v1.VirtualMachineInstance{}
	verdict, err := judge(r, c)
	if err == nil {
		err = decode(r.Object, vmi)
	}
	if err == nil && r.Operation == admissionv1.Update {
		err = decode(r.OldObject, old)
	}
	if err != nil {
		return nil, err
	}
	errs := reservedLabels(r, old, vmi)
	changes := r.Operation == admissionv1.Update && !equality.Semantic.DeepEqual(old.Spec, vmi.Spec)
	if !changes || slices.Contains(changers, r.UserInfo.Username) {
		return answer(r, append(errs, verdict.Errors...), verdict.Warnings...), nil
	}
	return answer(r, append(errs, &field.Error{
		Type: field.ErrorTypeNotSupported, Field: "spec", BadValue: field.OmitValueType{},
		Detail: "update of VMI object is restricted: change the VirtualMachine that made it",
	})), nil
}

// reservedLabels refuses a change of labels that are the components' own by anybody else.
func reservedLabels(r *admissionv1.AdmissionRequest, old, vmi *v1.VirtualMachineInstance) field.ErrorList {
	if slices.Contains(labelers, r.UserInfo.Username) {
		return nil
	}
	return changed(field.NewPath("metadata", "labels"), old.Labels, vmi.Labels)
}

// changed returns an error for each reserved label that is not as it was.
func changed(path *field.Path, old, labels map[string]string) field.ErrorList {
	var errs field.ErrorList
	for _, key := range validate.Reserved {
		was, had := old[key]
		value, has := labels[key]
		if was == value && had == has {
			continue
		}
		right := "must be left out"
		if had {
			right = fmt.Sprintf("must stay %q", was)
		}
		errs = append(errs, &field.Error{
			Type: field.ErrorTypeNotSupported, Field: path.Key(key).String(), BadValue: value,
			Detail: "is reserved for the components that place machines: " + right,
		})
	}
	return errs
}
