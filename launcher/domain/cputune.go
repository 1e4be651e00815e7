package domain

import (
	"slices"
	"strconv"
	"strings"

	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// cpuTune puts each thread of a guest that has CPUs for itself on its own; ioThreads is how many it has.
func (c *converter) cpuTune(ioThreads uint) *libvirtxml.DomainCPUTune {
	if c.pins == nil {
		return nil
	}
	t := &libvirtxml.DomainCPUTune{}
	for i, cpu := range c.pins.vcpus {
		t.VCPUPin = append(t.VCPUPin, libvirtxml.DomainCPUTuneVCPUPin{VCPU: uint(i), CPUSet: cpuSet(cpu)})
	}
	if len(c.pins.emulator) > 0 {
		t.EmulatorPin = &libvirtxml.DomainCPUTuneEmulatorPin{CPUSet: cpuSet(c.pins.emulator...)}
	}
	for i := range ioThreads {
		pin := libvirtxml.DomainCPUTuneIOThreadPin{IOThread: i + 1, CPUSet: cpuSet(c.ioThreadCPUs(int(i), int(ioThreads))...)}
		t.IOThreadPin = append(t.IOThreadPin, pin)
	}
	return t
}

// ioThreadCPUs returns where the i-th of n IO threads runs: on its own CPU of a pool, with QEMU's other threads where
// those are apart, else beside vCPUs, of which each has about as many threads beside it as any other.
func (c *converter) ioThreadCPUs(i, n int) []HostCPU {
	policy, vcpus := c.spec().IOThreadsPolicy, c.pins.vcpus
	switch {
	case policy != nil && *policy == v1.IOThreadsPolicySupplementalPool:
		return c.pins.pool[i : i+1]
	case len(c.pins.emulator) > 0:
		return c.pins.emulator
	case n >= len(vcpus):
		return vcpus[i%len(vcpus):][:1]
	}
	each, more := len(vcpus)/n, len(vcpus)%n
	first := i*each + min(i, more)
	if i < more {
		each++
	}
	return vcpus[first : first+each]
}

// cpuSet spells CPUs of the node as libvirt does: their numbers in order, with commas.
func cpuSet(cpus ...HostCPU) string {
	ids := make([]uint, 0, len(cpus))
	for _, cpu := range cpus {
		ids = append(ids, cpu.ID)
	}
	return numbers(ids)
}

func numbers(ids []uint) string {
	slices.Sort(ids)
	list := make([]string, 0, len(ids))
	for _, id := range ids {
		list = append(list, strconv.FormatUint(uint64(id), 10))
	}
	return strings.Join(list, ",")
}
