package domain

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

const (
	// minMemory in bytes: less can only be a slip of the unit.
	minMemory = 1000 * 1000
	// maxVCPUs is what QEMU's q35 takes.
	maxVCPUs = 4096
)

// topology returns the guest's sockets, cores and threads, each at least 1. A spec that gives none of them gets as many
// sockets as whole CPUs are limited or requested.
func (c *converter) topology() (sockets, cores, threads uint32) {
	if cpu := c.spec().CPU; cpu != nil && (cpu.Sockets != 0 || cpu.Cores != 0 || cpu.Threads != 0) {
		return max(cpu.Sockets, 1), max(cpu.Cores, 1), max(cpu.Threads, 1)
	}
	r := &c.spec().Resources
	for _, q := range []*resource.Quantity{r.Limits.Cpu(), r.Requests.Cpu()} {
		if n := q.Value(); n > 0 {
			return uint32(min(n, maxVCPUs+1)), 1, 1
		}
	}
	return 1, 1, 1
}

// maxSockets is how many sockets the guest could grow to.
func (c *converter) maxSockets(sockets uint32) uint32 {
	if cpu := c.spec().CPU; cpu != nil && c.arch.maxSockets {
		return max(cpu.MaxSockets, sockets)
	}
	return sockets
}

func (c *converter) vcpus() (*libvirtxml.DomainVCPU, *libvirtxml.DomainVCPUs) {
	sockets, cores, threads := c.topology()
	perSocket := uint(cores) * uint(threads)
	most := perSocket
	if perSocket <= maxVCPUs { // or the product of three numbers of 32 bits might not fit into 64
		most *= uint(c.maxSockets(sockets))
	}
	if most > maxVCPUs {
		asked := fmt.Sprintf("%d × %d × %d", c.maxSockets(sockets), cores, threads)
		c.refuse(field.Invalid(c.path.Child("cpu"), asked, "sockets × cores × threads must be at most 4096"))
		return nil, nil
	}
	count := uint(sockets) * perSocket
	vcpu := &libvirtxml.DomainVCPU{Placement: "static", Value: most}
	if most == count {
		return vcpu, nil
	}
	list := &libvirtxml.DomainVCPUs{}
	for id := range most {
		enabled, hot := id < count, id >= perSocket
		list.VCPU = append(list.VCPU, libvirtxml.DomainVCPUsVCPU{Id: ptr(id), Enabled: yesNo(&enabled), Hotpluggable: yesNo(&hot)})
	}
	vcpu.Current = count
	return vcpu, list
}

func (c *converter) cpu() *libvirtxml.DomainCPU {
	sockets, cores, threads := c.topology()
	d := &libvirtxml.DomainCPU{Topology: &libvirtxml.DomainCPUTopology{
		Sockets: int(c.maxSockets(sockets)), Cores: int(cores), Threads: int(threads),
	}}
	cpu := c.spec().CPU
	model := ""
	if cpu != nil {
		model = cpu.Model
		for _, f := range cpu.Features {
			d.Features = append(d.Features, libvirtxml.DomainCPUFeature{Name: f.Name, Policy: policy(f)})
		}
	}
	switch {
	case isHost(model) && c.facts.KVM:
		d.Mode = model
		if model == "" {
			d.Mode = c.arch.hostModel
		}
	case isHost(model):
		d.Mode, d.Match, d.Check = "custom", "exact", "none"
		d.Model = &libvirtxml.DomainCPUModel{Fallback: "forbid", Value: c.arch.emulated}
	default:
		d.Mode, d.Match = "custom", "exact"
		d.Model = &libvirtxml.DomainCPUModel{Fallback: "forbid", Value: model}
		if !c.facts.KVM {
			d.Check = "none"
		}
		c.disableMPX(d)
	}
	return d
}

// disableMPX takes away what old models name and no new machine has, unless the spec asks for it.
func (c *converter) disableMPX(d *libvirtxml.DomainCPU) {
	named := slices.ContainsFunc(d.Features, func(f libvirtxml.DomainCPUFeature) bool { return f.Name == "mpx" })
	if c.arch.mpx && !named {
		d.Features = append(d.Features, libvirtxml.DomainCPUFeature{Name: "mpx", Policy: "disable"})
	}
}

func policy(f v1.CPUFeature) string {
	if f.Policy == "" {
		return "require"
	}
	return f.Policy
}

func isHost(model string) bool {
	return model == "" || model == v1.CPUModeHostModel || model == v1.CPUModeHostPassthrough
}

// memory is what the guest gets: spec.domain.memory.guest, or the memory requested, or the limit.
func (c *converter) memory() *libvirtxml.DomainMemory {
	q, path := c.guestMemory()
	if q == nil {
		c.refuse(field.Required(path, "the guest's memory, such as 1Gi"))
		return nil
	}
	if q.Cmp(*resource.NewQuantity(minMemory, resource.BinarySI)) < 0 {
		c.refuse(field.Invalid(path, q.String(), "must be at least 1M: a number without a unit counts bytes"))
		return nil
	}
	return &libvirtxml.DomainMemory{Unit: "b", Value: uint(q.Value())}
}

func (c *converter) guestMemory() (*resource.Quantity, *field.Path) {
	s := c.spec()
	if s.Memory != nil && s.Memory.Guest != nil {
		return s.Memory.Guest, c.path.Child("memory", "guest")
	}
	resources := c.path.Child("resources")
	if q := s.Resources.Requests.Memory(); !q.IsZero() {
		return q, resources.Child("requests", "memory")
	}
	if q := s.Resources.Limits.Memory(); !q.IsZero() {
		return q, resources.Child("limits", "memory")
	}
	return nil, c.path.Child("memory", "guest")
}
