package validate

import (
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/cpumask"
)

// dedicated checks CPUs of the machine's own: whole ones, as many as the topology says, with the memory known.
func dedicated(domain *field.Path, spec *v1.VirtualMachineInstanceSpec, from supplies) field.ErrorList {
	d := &spec.Domain
	c := d.CPU
	if c == nil {
		return nil
	}
	path := domain.Child("cpu")
	errs := needsDedicated(domain, d)
	if !c.DedicatedCPUPlacement {
		return errs
	}
	if most := uint32(2); c.Threads > most || architecture(spec) == arm64 && c.Threads > 1 {
		errs = append(errs, field.Invalid(path.Child("threads"), int64(c.Threads),
			"must be at most 2 with dedicatedCpuPlacement, and 1 on arm64"))
	}
	if from.instancetype {
		return errs
	}
	return append(errs, wholeCPUs(domain, d)...)
}

// needsDedicated lists what makes no sense on shared CPUs.
func needsDedicated(domain *field.Path, d *v1.DomainSpec) field.ErrorList {
	c, path := d.CPU, domain.Child("cpu")
	var errs field.ErrorList
	refuse := func(at *field.Path, detail string) { errs = append(errs, field.Required(at, detail)) }
	numa := c.NUMA != nil && c.NUMA.GuestMappingPassthrough != nil
	own := path.Child("dedicatedCpuPlacement")
	if c.Realtime != nil && !c.DedicatedCPUPlacement {
		refuse(own, "must be true for cpu.realtime")
	}
	if c.Realtime != nil && !numa {
		refuse(path.Child("numa", "guestMappingPassthrough"), "must be given, as {}, for cpu.realtime")
	}
	if c.Realtime != nil {
		if _, err := cpumask.Parse(c.Realtime.Mask); err != nil {
			errs = append(errs, field.Invalid(path.Child("realtime", "mask"), short(c.Realtime.Mask), "must be the numbers of virtual CPUs, such as 0-3,^1, or left out for all"))
		}
	}
	if numa && !c.DedicatedCPUPlacement {
		refuse(own, "must be true for cpu.numa.guestMappingPassthrough")
	}
	if numa && (d.Memory == nil || d.Memory.Hugepages == nil) {
		refuse(domain.Child("memory", "hugepages"), "must be given for cpu.numa.guestMappingPassthrough")
	}
	return errs
}

func wholeCPUs(domain *field.Path, d *v1.DomainSpec) field.ErrorList {
	c, path := d.CPU, domain.Child("resources")
	request, requested := d.Resources.Requests[k8sv1.ResourceCPU]
	limit, limited := d.Resources.Limits[k8sv1.ResourceCPU]
	counted := c.Sockets != 0 || c.Cores != 0 || c.Threads != 0
	if !requested && !limited && !counted {
		return field.ErrorList{field.Required(domain.Child("cpu"),
			"must have sockets, cores or threads with dedicatedCpuPlacement, or resources.requests.cpu")}
	}
	var errs field.ErrorList
	count := int64(max(1, c.Sockets)) * int64(max(1, c.Cores)) * int64(max(1, c.Threads))
	check := func(at *field.Path, q resource.Quantity) {
		switch {
		case q.MilliValue()%1000 != 0:
			errs = append(errs, field.Invalid(at, q.String(), "must be whole CPUs with dedicatedCpuPlacement, such as 2"))
		case counted && q.Value() != count:
			errs = append(errs, field.Invalid(at, q.String(),
				fmt.Sprintf("must be %d, what sockets, cores and threads make, or be left out", count)))
		}
	}
	if requested {
		check(path.Child("requests", "cpu"), request)
	}
	if limited {
		check(path.Child("limits", "cpu"), limit)
	}
	for _, name := range []k8sv1.ResourceName{k8sv1.ResourceCPU, k8sv1.ResourceMemory} {
		ask, a := d.Resources.Requests[name]
		most, b := d.Resources.Limits[name]
		if a && b && ask.Cmp(most) != 0 {
			errs = append(errs, field.Invalid(path.Child("requests", string(name)), ask.String(),
				fmt.Sprintf("must be the limit, %s, with dedicatedCpuPlacement", most.String())))
		}
	}
	return errs
}

// growth checks the memory that a running machine may be given.
func growth(domain *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	d := &spec.Domain
	from, guest := guestMemory(domain, d)
	if d.Memory == nil || d.Memory.MaxGuest == nil || guest == nil || d.Memory.MaxGuest.Cmp(*guest) <= 0 {
		return nil
	}
	at, most := domain.Child("memory", "maxGuest"), d.Memory.MaxGuest
	refuse := func(detail string) field.ErrorList {
		return field.ErrorList{field.Invalid(at, most.String(), detail)}
	}
	switch numa := d.CPU != nil && d.CPU.NUMA != nil && d.CPU.NUMA.GuestMappingPassthrough != nil; {
	case d.CPU != nil && d.CPU.Realtime != nil:
		return refuse("must be left out beside cpu.realtime: memory of such a machine can't grow")
	case numa:
		return refuse("must be left out beside cpu.numa.guestMappingPassthrough: memory of such a machine can't grow")
	case d.LaunchSecurity != nil:
		return refuse("must be left out beside launchSecurity: memory of such a machine can't grow")
	case architecture(spec) != amd64:
		return refuse("must be left out on architectures other than amd64")
	}
	block, unit := int64(2<<20), "2Mi"
	if h := d.Memory.Hugepages; h != nil && h.PageSize == "1Gi" {
		block, unit = 1<<30, "1Gi"
	}
	var errs field.ErrorList
	if guest.CmpInt64(1<<30) < 0 {
		errs = append(errs, field.Invalid(from, guest.String(), "must be at least 1Gi when maxGuest lets it grow"))
	}
	for _, q := range []struct {
		at *field.Path
		*resource.Quantity
	}{{from, guest}, {at, most}} {
		if q.Value()%block != 0 {
			errs = append(errs, field.Invalid(q.at, q.String(),
				"must be a multiple of "+unit+", the block in which memory grows"))
		}
	}
	return errs
}
