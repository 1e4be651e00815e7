package plan

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"

	"virtstack.io/virtstack/machine/instancetype"
)

// Beside returns what a plan wants to see of a VM in a cluster, by kind, namespace and name: its VMI, the instancetype and
// preference that it names, and the revisions that it keeps of them. None of it has to be there.
func Beside(o Object) []*unstructured.Unstructured {
	vm := &v1.VirtualMachine{}
	if !decode(o.Unstructured, vm) {
		return nil
	}
	named := func(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	out := []*unstructured.Unstructured{named(v1.GroupVersion.String(), "VirtualMachineInstance", vm.Namespace, vm.Name)}
	for _, m := range instancetype.Matchers(vm) {
		if r, ok := m.Reference(vm.Namespace); ok && m.Name != "" {
			out = append(out, named(v1beta1.SchemeGroupVersion.String(), r.Kind, r.Namespace, r.Name))
		}
		if m.RevisionName != "" {
			out = append(out, named(appsv1.SchemeGroupVersion.String(), "ControllerRevision", vm.Namespace, m.RevisionName))
		}
	}
	for _, ref := range []*v1.InstancetypeStatusRef{vm.Status.InstancetypeRef, vm.Status.PreferenceRef} {
		if ref != nil && ref.ControllerRevisionRef != nil {
			out = append(out, named(appsv1.SchemeGroupVersion.String(), "ControllerRevision", vm.Namespace, ref.ControllerRevisionRef.Name))
		}
	}
	return out
}
