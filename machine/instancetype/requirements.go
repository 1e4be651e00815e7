package instancetype

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"

	"virtstack.io/virtstack/machine/config"
)

var instancetypePath = field.NewPath("spec", "instancetype")

// CheckRequirements returns what the machine of spec and choice lacks of what its preference requires: vCPUs, memory,
// architecture, and a number of vCPUs that the preferred topology divides. An error names the instancetype where that
// gives the number, else the field of the template.
func CheckRequirements(spec *v1.VirtualMachineInstanceSpec, c Choice, cfg config.Config) field.ErrorList {
	if c.Preference == nil {
		return nil
	}
	errs := checkSpread(c)
	r := c.Preference.Requirements
	if r == nil {
		return errs
	}
	if r.CPU != nil {
		errs = append(errs, checkCPU(spec, c, r.CPU.Guest)...)
	}
	if r.Memory != nil {
		errs = append(errs, checkMemory(spec, c, r.Memory)...)
	}
	if r.Architecture != nil {
		errs = append(errs, checkArchitecture(spec, c.Preference, *r.Architecture, cfg)...)
	}
	return errs
}

func checkSpread(c Choice) field.ErrorList {
	if c.Instancetype == nil {
		return nil
	}
	n := c.Instancetype.CPU.Guest
	step, ok := topologyOf(c.Preference).divides(n)
	if ok {
		return nil
	}
	return field.ErrorList{field.Invalid(instancetypePath, n,
		fmt.Sprintf("the preference spreads vCPUs in steps of %d: choose an instance type with a multiple of that, or another preference", step))}
}

func checkCPU(spec *v1.VirtualMachineInstanceSpec, c Choice, need uint32) field.ErrorList {
	path, have := instancetypePath, uint64(0)
	if c.Instancetype != nil {
		have = uint64(c.Instancetype.CPU.Guest)
	} else {
		path, have = templateCPUs(spec.Domain.CPU, topologyOf(c.Preference).prefer)
	}
	if have >= uint64(need) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, have, fmt.Sprintf("insufficient CPU resources: the preference requires at least %d vCPUs", need))}
}

// templateCPUs returns the vCPUs of a template by the field that the preferred topology counts; a spread counts all.
func templateCPUs(cpu *v1.CPU, prefer v1beta1.PreferredCPUTopology) (*field.Path, uint64) {
	path := domainPath.Child("cpu")
	if cpu == nil {
		cpu = &v1.CPU{}
	}
	switch prefer {
	case v1beta1.Cores:
		return path.Child("cores"), uint64(cpu.Cores)
	case v1beta1.Threads:
		return path.Child("threads"), uint64(cpu.Threads)
	case v1beta1.Spread:
		product := uint64(1)
		for _, n := range []uint32{cpu.Sockets, cpu.Cores, cpu.Threads} {
			product = min(product, 1<<31) * uint64(max(n, 1))
		}
		return path, product
	}
	return path.Child("sockets"), uint64(cpu.Sockets)
}

func checkMemory(spec *v1.VirtualMachineInstanceSpec, c Choice, need *v1beta1.MemoryPreferenceRequirement) field.ErrorList {
	path, have := instancetypePath, "0"
	switch m := spec.Domain.Memory; {
	case c.Instancetype != nil && c.Instancetype.Memory.Guest.Cmp(need.Guest) >= 0:
		return nil
	case c.Instancetype != nil:
		have = c.Instancetype.Memory.Guest.String()
	case m != nil && m.Guest != nil && m.Guest.Cmp(need.Guest) >= 0:
		return nil
	default:
		path = domainPath.Child("memory")
		if m != nil && m.Guest != nil {
			have = m.Guest.String()
		}
	}
	return field.ErrorList{field.Invalid(path, have, fmt.Sprintf("insufficient memory resources: the preference requires at least %s", need.Guest.String()))}
}

func checkArchitecture(spec *v1.VirtualMachineInstanceSpec, p *v1beta1.VirtualMachinePreferenceSpec, need string, cfg config.Config) field.ErrorList {
	have := cfg.Architecture
	if p.PreferredArchitecture != nil {
		have = *p.PreferredArchitecture
	}
	if spec.Architecture != "" {
		have = spec.Architecture
	}
	if have == need {
		return nil
	}
	return field.ErrorList{field.Invalid(specPath.Child("architecture"), have, fmt.Sprintf("the preference requires architecture %s", need))}
}
