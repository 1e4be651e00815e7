// Package instancetype expands a VM by its instancetype and preference: it gives the VM whose template says in full what
// the two say by name. It is pure, and nothing of it is ever written back to a VM's spec.
package instancetype

import (
	"maps"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
)

// Choice is what a VM's matchers name, found. Its zero value chooses nothing.
type Choice struct {
	Instancetype *v1beta1.VirtualMachineInstancetypeSpec
	Preference   *v1beta1.VirtualMachinePreferenceSpec
	// ClearMemory drops the template's memory in favour of the instancetype's; source: what inference from a volume
	// does with the policy IgnoreInferFromVolumeFailure.
	ClearMemory bool
}

// Expand returns a copy of vm whose template holds what the choice says, and whose matchers are gone: it means the same
// machine, and expanding it again changes nothing. The errors name every field that the template and the instancetype
// both set, or else what of the preference's requirements isn't met; there is no VM then. A VM without a template comes
// back as it is.
func Expand(vm *v1.VirtualMachine, c Choice, cfg config.Config) (*v1.VirtualMachine, field.ErrorList) {
	out := vm.DeepCopy()
	out.Spec.Instancetype, out.Spec.Preference = nil, nil
	t := out.Spec.Template
	if t == nil || c.Instancetype == nil && c.Preference == nil {
		return out, nil
	}
	if c.ClearMemory {
		t.Spec.Domain.Memory = nil
	}
	if errs := Conflicts(t, c.Instancetype); len(errs) > 0 {
		return nil, errs
	}
	if errs := CheckRequirements(&t.Spec, c, cfg); len(errs) > 0 {
		return nil, errs
	}
	if p := c.Preference; p != nil {
		preferAttached(&t.Spec.Domain.Devices, p.Devices)
		defaults.Attach(&t.Spec, cfg)
	}
	if c.Instancetype != nil {
		setTemplate(t, c)
	}
	if p := c.Preference; p != nil {
		preferTemplate(t, p)
		preferStorage(out.Spec.DataVolumeTemplates, p.Volumes)
	}
	return out, nil
}

// setTemplate writes what the instancetype says. It follows Conflicts, so nothing that the template says is lost.
func setTemplate(t *v1.VirtualMachineInstanceTemplateSpec, c Choice) {
	from := c.Instancetype.DeepCopy()
	s := &t.Spec
	setCPU(&s.Domain, from.CPU, topologyOf(c.Preference))
	setMemory(&s.Domain, from.Memory)
	t.ObjectMeta.Annotations = missing(t.ObjectMeta.Annotations, from.Annotations)
	if from.NodeSelector != nil {
		s.NodeSelector = from.NodeSelector
	}
	if from.SchedulerName != "" {
		s.SchedulerName = from.SchedulerName
	}
	if from.GPUs != nil {
		s.Domain.Devices.GPUs = from.GPUs
	}
	if from.HostDevices != nil {
		s.Domain.Devices.HostDevices = from.HostDevices
	}
	if from.IOThreadsPolicy != nil {
		s.Domain.IOThreadsPolicy = from.IOThreadsPolicy
	}
	if from.IOThreads != nil {
		s.Domain.IOThreads = from.IOThreads
	}
	if from.LaunchSecurity != nil {
		s.Domain.LaunchSecurity = from.LaunchSecurity
	}
}

// missing adds to have the keys of more that it lacks.
func missing(have, more map[string]string) map[string]string {
	if len(more) == 0 {
		return have
	}
	out := maps.Clone(more)
	maps.Copy(out, have)
	return out
}
