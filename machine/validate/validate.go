// Package validate says what is wrong with the spec of a machine: rules that hold whatever else exists in
// the cluster. What names an object that may come later (a claim, a secret, an instance type) is never
// refused here, and neither is what some node or version cannot run: those are conditions.
//
// Every error has the path of the field, the value, and what would be right.
package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// VM returns what is wrong with the spec of vm, in the order of its fields.
func VM(vm *v1.VirtualMachine) field.ErrorList {
	path := field.NewPath("spec")
	errs := running(path, &vm.Spec)
	if vm.Spec.Template == nil {
		return append(errs, field.Required(path.Child("template"), "must hold the machine to run"))
	}
	errs = append(errs, metadata(path.Child("template", "metadata"), vm.Spec.Template.ObjectMeta)...)
	errs = append(errs, matchers(path, &vm.Spec)...)
	errs = append(errs, claims(path.Child("dataVolumeTemplates"), &vm.Spec)...)
	if s := vm.Spec.UpdateVolumesStrategy; s != nil {
		errs = append(errs, oneOf(path.Child("updateVolumesStrategy"), *s, volumeStrategies)...)
	}
	supplied := supplies{instancetype: vm.Spec.Instancetype != nil, preference: vm.Spec.Preference != nil}
	return append(errs, machine(path.Child("template", "spec"), &vm.Spec.Template.Spec, supplied)...)
}

// VMI returns what is wrong with spec, in the order of its fields; path is where spec is.
func VMI(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	return machine(path, spec, supplies{})
}

// supplies says which parts of a machine come from objects beside its spec.
type supplies struct {
	// instancetype: CPU and memory.
	instancetype bool
	// preference: whatever firmware and features the spec leaves open.
	preference bool
}

func machine(path *field.Path, spec *v1.VirtualMachineInstanceSpec, from supplies) field.ErrorList {
	domain := path.Child("domain")
	var errs field.ErrorList
	errs = append(errs, memory(domain, &spec.Domain, from)...)
	errs = append(errs, resources(domain.Child("resources"), spec.Domain.Resources)...)
	errs = append(errs, cpu(domain.Child("cpu"), spec.Domain.CPU)...)
	errs = append(errs, dedicated(domain, spec, from)...)
	errs = append(errs, growth(domain, spec)...)
	errs = append(errs, firmware(domain, &spec.Domain, from)...)
	errs = append(errs, tables(domain.Child("firmware", "acpi"), spec)...)
	errs = append(errs, chassis(domain.Child("chassis"), spec.Domain.Chassis)...)
	errs = append(errs, clock(domain.Child("clock"), spec.Domain.Clock)...)
	errs = append(errs, features(domain, &spec.Domain)...)
	errs = append(errs, confidential(path, spec)...)
	errs = append(errs, arm(path, spec)...)
	errs = append(errs, ioThreads(domain, &spec.Domain)...)
	errs = append(errs, devices(domain.Child("devices"), spec)...)
	errs = append(errs, disks(domain.Child("devices"), spec, from)...)
	errs = append(errs, interfaces(domain.Child("devices", "interfaces"), spec, from)...)
	errs = append(errs, bootOrder(domain.Child("devices"), &spec.Domain.Devices)...)
	errs = append(errs, volumes(path.Child("volumes"), spec.Volumes)...)
	errs = append(errs, directories(path, spec)...)
	errs = append(errs, networks(path.Child("networks"), spec)...)
	return append(errs, guest(path, spec)...)
}

var runStrategies = []v1.VirtualMachineRunStrategy{
	v1.RunStrategyAlways, v1.RunStrategyHalted, v1.RunStrategyManual, v1.RunStrategyOnce, v1.RunStrategyRerunOnFailure,
}

// volumeStrategies are the ways in which a changed volume gets to a machine that runs.
var volumeStrategies = []v1.UpdateVolumesStrategy{v1.UpdateVolumesStrategyReplacement, v1.UpdateVolumesStrategyMigration}

// running wants exactly one of running and runStrategy.
func running(path *field.Path, spec *v1.VirtualMachineSpec) field.ErrorList {
	strategy := path.Child("runStrategy")
	switch {
	case spec.Running != nil && spec.RunStrategy != nil:
		return field.ErrorList{field.Invalid(path.Child("running"), *spec.Running,
			"running and runStrategy exclude each other: keep runStrategy and remove running")}
	case spec.Running != nil:
		return nil
	case spec.RunStrategy == nil || *spec.RunStrategy == "":
		return field.ErrorList{field.Required(strategy, "must say when the machine runs, such as Always or Halted")}
	}
	return oneOf(strategy, *spec.RunStrategy, runStrategies)
}
