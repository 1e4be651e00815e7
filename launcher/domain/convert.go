// Package domain turns a VirtualMachineInstance and facts about its node into a libvirt domain. It is the only place
// that knows libvirt's XML, and it is pure: what it needs to know comes in, the domain comes out.
package domain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"

	"virtstack.io/virtstack/machine/names"
)

// Convert returns the domain that runs a VMI. Its error lists every field that can't be converted, each with its path,
// its value and what would be right. The VMI is not changed.
func Convert(vmi *v1.VirtualMachineInstance, facts Facts) (*libvirtxml.Domain, error) {
	c := &converter{vmi: vmi, facts: facts, path: field.NewPath("spec", "domain")}
	c.arch = c.lookUpArch()
	c.refuseUnsupported()
	c.checkPages()
	c.pins = c.pin()
	c.cells = c.mappedCells()
	d := &libvirtxml.Domain{
		Type:       c.hypervisor(),
		Name:       names.Domain(vmi.Namespace, vmi.Name),
		Memory:     c.memory(),
		SysInfo:    c.sysInfo(),
		OS:         c.os(),
		Features:   c.features(),
		CPU:        c.cpu(),
		Clock:      c.clock(),
		OnPoweroff: "destroy",
		OnReboot:   c.onReboot(),
		OnCrash:    "destroy",
		Devices:    c.devices(),
	}
	if fw := vmi.Spec.Domain.Firmware; fw != nil {
		d.UUID = string(fw.UUID)
	}
	d.MemoryBacking = c.memoryBacking()
	d.VCPU, d.VCPUs = c.vcpus()
	d.IOThreads = c.ioThreads(d.Devices)
	d.CPUTune, d.NUMATune = c.cpuTune(d.IOThreads), c.numaTune()
	if d.VCPU != nil {
		d.CPU.Numa = c.numa(d.MemoryBacking, d.VCPU.Value)
	}
	if err := c.errs.ToAggregate(); err != nil {
		return nil, err
	}
	return d, nil
}

// converter carries one conversion: what is converted, and the errors found so far.
type converter struct {
	vmi   *v1.VirtualMachineInstance
	facts Facts
	arch  arch
	path  *field.Path
	pins  *pins  // nil: the guest shares the node's CPUs
	cells []cell // empty: the guest doesn't have the node's NUMA cells
	errs  field.ErrorList
}

func (c *converter) spec() *v1.DomainSpec { return &c.vmi.Spec.Domain }

func (c *converter) refuse(err *field.Error) { c.errs = append(c.errs, err) }

func (c *converter) hypervisor() string {
	if c.facts.KVM {
		return "kvm"
	}
	return "qemu"
}

func (c *converter) onReboot() string {
	policy := c.spec().RebootPolicy
	if policy != nil && *policy == v1.RebootPolicyTerminate {
		return "destroy"
	}
	return "restart"
}

func (c *converter) devices() *libvirtxml.DomainDeviceList {
	l := &libvirtxml.DomainDeviceList{
		Emulator:    c.arch.emulator,
		Disks:       c.disks(),
		Filesystems: c.filesystems(),
		Interfaces:  c.interfaces(),
		Channels:    c.channels(),
		Inputs:      c.inputs(),
		Graphics:    c.graphics(),
		Videos:      c.videos(),
		MemBalloon:  c.balloon(),
		RNGs:        c.rngs(),
		Watchdogs:   c.watchdogs(),
		Sounds:      c.sounds(),
		Panics:      c.panics(),
		TPMs:        c.tpms(),
		Hostdevs:    c.hostDevices(),
		VSock:       c.vsock(),
	}
	l.Serials, l.Consoles = c.serial()
	l.Controllers = c.controllers(l)
	return l
}

// on is true where a switch is not set to false.
func on(b *bool) bool { return b == nil || *b }

func yesNo(b *bool) string {
	if on(b) {
		return "yes"
	}
	return "no"
}

func onOff(b *bool) string {
	if on(b) {
		return "on"
	}
	return "off"
}

func ptr[T any](v T) *T { return &v }
