package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/instancetype"
)

// key is what objects are paired by: a kind is the same in every version.
type key struct{ group, kind, namespace, name string }

func keyOf(o *unstructured.Unstructured) key {
	return key{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// side is one side, indexed.
type side struct {
	objects map[key]Object
	beside  map[key]*unstructured.Unstructured
	config  config.Config
	// vms are those that could be read.
	vms map[key]*v1.VirtualMachine
}

func newSide(s Side) side {
	out := side{objects: map[key]Object{}, beside: map[key]*unstructured.Unstructured{}, vms: map[key]*v1.VirtualMachine{}}
	for _, o := range s.Objects {
		out.objects[keyOf(o.Unstructured)] = o
	}
	for _, o := range s.Beside {
		out.beside[keyOf(o)] = o
	}
	var kv *v1.KubeVirt
	for _, k := range slices.SortedFunc(maps.Keys(out.objects), compareKeys) {
		switch {
		case k.group == v1.GroupVersion.Group && k.kind == "VirtualMachine":
			vm := &v1.VirtualMachine{}
			if decode(out.objects[k].Unstructured, vm) && vm.Spec.Template != nil {
				out.vms[k] = vm
			}
		case kv == nil && k.group == v1.GroupVersion.Group && k.kind == "KubeVirt":
			kv = out.install(out.objects[k].Unstructured)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(out.beside), compareKeys) {
		if kv == nil && k.group == v1.GroupVersion.Group && k.kind == "KubeVirt" {
			kv = out.install(out.beside[k])
		}
	}
	out.config = config.From(kv)
	return out
}

func (side) install(o *unstructured.Unstructured) *v1.KubeVirt {
	kv := &v1.KubeVirt{}
	if !decode(o, kv) {
		return nil
	}
	return kv
}

// decode reads an object into its type, and tells whether it fits.
func decode(o *unstructured.Unstructured, into any) bool {
	text, err := o.MarshalJSON()
	return err == nil && json.Unmarshal(text, into) == nil
}

// find returns an object, planned or beside.
func (s side) find(k key) *unstructured.Unstructured {
	if o, ok := s.objects[k]; ok {
		return o.Unstructured
	}
	return s.beside[k]
}

// choose sets in c what a matcher of a VM names on this side, and tells whether it is here.
func (s side) choose(c *instancetype.Choice, m instancetype.Matcher, namespace string) bool {
	if m.RevisionName != "" {
		return s.restore(c, m, namespace, m.RevisionName)
	}
	r, ok := m.Reference(namespace)
	if !ok || m.Name == "" {
		return false
	}
	o := s.find(key{v1beta1.SchemeGroupVersion.Group, r.Kind, r.Namespace, r.Name})
	if o == nil {
		return false
	}
	if m.Preference {
		object := &v1beta1.VirtualMachinePreference{}
		ok = decode(o, object)
		c.Preference = &object.Spec
		return ok
	}
	object := &v1beta1.VirtualMachineInstancetype{}
	ok = decode(o, object)
	c.Instancetype = &object.Spec
	return ok
}

// restore sets in c what a ControllerRevision keeps.
func (s side) restore(c *instancetype.Choice, m instancetype.Matcher, namespace, name string) bool {
	o := s.find(key{appsv1.GroupName, "ControllerRevision", namespace, name})
	revision := &appsv1.ControllerRevision{}
	return o != nil && decode(o, revision) && m.Read(c, revision) == nil
}
