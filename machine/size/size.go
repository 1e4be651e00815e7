// Package size says what a launcher Pod asks of a node for its VMI.
package size

import (
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
)

// What a launcher Pod needs beside guest RAM, in bytes, from measured proportional set sizes with a margin of about
// 28 MiB; source: docs/decisions/0005-memory-overhead.md.
const (
	mib = int64(1) << 20

	launcherMemory    = 15 * mib
	libvirtdMemory    = 17 * mib
	emulatorMemory    = 52 * mib
	translationMemory = 32 * mib
	perVCPUMemory     = 4 * mib
	perScreenMemory   = 4 * mib
)

// maxOverhead, 1 Pi, is the most bytes of it, however wide the margin that is asked for.
const maxOverhead = 1 << 50

// maxPool is the most IO threads that count, as many as QEMU's machines may have vCPUs.
const maxPool = 4096

// VCPUs returns how many the guest of a defaulted VMI gets.
func VCPUs(vmi *v1.VirtualMachineInstance) int64 {
	c := vmi.Spec.Domain.CPU
	if c == nil {
		return 1
	}
	return max(1, int64(c.Cores)) * max(1, int64(c.Sockets)) * max(1, int64(c.Threads))
}

// PoolCPUs returns how many CPUs a VMI's pool of IO threads needs beside those of its vCPUs: one for each thread.
func PoolCPUs(vmi *v1.VirtualMachineInstance) int64 {
	d := &vmi.Spec.Domain
	if d.IOThreadsPolicy == nil || *d.IOThreadsPolicy != v1.IOThreadsPolicySupplementalPool || d.IOThreads == nil || d.IOThreads.SupplementalPoolThreadCount == nil {
		return 0
	}
	return min(max(0, int64(*d.IOThreads.SupplementalPoolThreadCount)), maxPool)
}

// EmulatorCPUs returns how many CPUs QEMU's other threads have for themselves, beside others for vCPUs and IO threads:
// none unless the VMI isolates them, and a second one where its annotation wants an even number in all.
func EmulatorCPUs(vmi *v1.VirtualMachineInstance, others int64) int64 {
	c := vmi.Spec.Domain.CPU
	if c == nil || !c.IsolateEmulatorThread {
		return 0
	}
	if _, even := vmi.Annotations[v1.EmulatorThreadCompleteToEvenParity]; even && others%2 == 0 {
		return 2
	}
	return 1
}

// Overhead returns the bytes a launcher Pod needs beyond guest RAM. It grows with vCPUs, a screen and devices that are
// processes of their own, by what the VMI reserves beside, and all of it by the administrator's ratio. It never fails.
// Source: measured PSS, docs/decisions/0005-memory-overhead.md.
func Overhead(vmi *v1.VirtualMachineInstance, cfg config.Config) resource.Quantity {
	bytes := launcherMemory + libvirtdMemory + emulatorMemory + perVCPUMemory*(VCPUs(vmi)-1)
	if cfg.UseEmulation {
		bytes += translationMemory
	}
	if g := vmi.Spec.Domain.Devices.AutoattachGraphicsDevice; g == nil || *g {
		bytes += perScreenMemory
	}
	bytes += deviceMemory(&vmi.Spec.Domain.Devices) + probeMemory*askers(vmi)
	if m := vmi.Spec.Domain.Memory; m != nil && m.ReservedOverhead != nil && m.ReservedOverhead.AddedOverhead != nil {
		bytes += min(max(0, m.ReservedOverhead.AddedOverhead.Value()), maxOverhead)
	}
	bytes = int64(min(float64(bytes)*max(1, cfg.OverheadRatio), maxOverhead))
	return *resource.NewQuantity(bytes, resource.BinarySI)
}

// Pod returns the resources of the compute container of a defaulted VMI. Limits are set only where the VMI has some, or
// has part of its node for itself: then they are what is requested. Devices and huge pages count as both.
func Pod(vmi *v1.VirtualMachineInstance, cfg config.Config) k8sv1.ResourceRequirements {
	out := k8sv1.ResourceRequirements{Requests: k8sv1.ResourceList{}, Limits: k8sv1.ResourceList{}}
	share(&out, vmi, cfg)
	if c := vmi.Spec.Domain.CPU; c != nil && c.DedicatedCPUPlacement {
		dedicate(&out, vmi, cfg)
	}
	addHugepages(&out, &vmi.Spec.Domain)
	one := *resource.NewQuantity(1, resource.DecimalSI)
	if needsTun(vmi) {
		out.Limits[names.TunDevice], out.Requests[names.TunDevice] = one, one
	}
	if !cfg.UseEmulation {
		out.Limits[names.KVMDevice], out.Requests[names.KVMDevice] = one, one
	}
	if !cfg.UseEmulation && hasVirtioNIC(vmi) {
		out.Limits[names.VhostDevice], out.Requests[names.VhostDevice] = one, one
	}
	addDevices(&out, &vmi.Spec.Domain.Devices)
	return out
}

// share asks for a part of the node's CPUs and memory.
func share(out *k8sv1.ResourceRequirements, vmi *v1.VirtualMachineInstance, cfg config.Config) {
	r := vmi.Spec.Domain.Resources
	out.Requests[k8sv1.ResourceCPU], out.Requests[k8sv1.ResourceMemory] = cpuRequest(vmi, cfg), memoryRequest(vmi, cfg)
	others(out, r)
	if q, ok := r.Limits[k8sv1.ResourceCPU]; ok {
		out.Limits[k8sv1.ResourceCPU] = q
	}
	if q, ok := r.Limits[k8sv1.ResourceMemory]; ok {
		out.Limits[k8sv1.ResourceMemory] = sum(beside(q, &vmi.Spec.Domain), Overhead(vmi, cfg))
	}
}

// Whole tells whether a node gives a resource whole, so that a Pod's limit of it has to be its request.
func Whole(name k8sv1.ResourceName) bool {
	return strings.Contains(string(name), "/") || strings.HasPrefix(string(name), k8sv1.ResourceHugePagesPrefix)
}

// others asks for what the VMI names beside CPUs and memory. Of what nodes give whole, as much is the limit: the API server
// has it so.
func others(out *k8sv1.ResourceRequirements, r v1.ResourceRequirements) {
	for name, q := range r.Requests {
		if name == k8sv1.ResourceCPU || name == k8sv1.ResourceMemory {
			continue
		}
		if out.Requests[name] = q; Whole(name) {
			out.Limits[name] = q
		}
	}
	for name, q := range r.Limits {
		if name != k8sv1.ResourceCPU && name != k8sv1.ResourceMemory {
			out.Limits[name] = q
		}
	}
}

// dedicate asks for whole CPUs and all of the memory, none of it lent to others: a Pod with limits like its requests is
// Guaranteed, and only such a Pod is given CPUs for itself.
func dedicate(out *k8sv1.ResourceRequirements, vmi *v1.VirtualMachineInstance, cfg config.Config) {
	others := VCPUs(vmi) + PoolCPUs(vmi)
	cpus := *resource.NewQuantity(others+EmulatorCPUs(vmi, others), resource.DecimalSI)
	cfg.MemoryOvercommit = 100
	memory := sum(guestRequest(vmi, cfg), Overhead(vmi, cfg))
	for _, list := range []k8sv1.ResourceList{out.Requests, out.Limits} {
		list[k8sv1.ResourceCPU], list[k8sv1.ResourceMemory] = cpus, memory
	}
}

func sum(a, b resource.Quantity) resource.Quantity {
	a = a.DeepCopy()
	a.Add(b)
	return a
}

func cpuRequest(vmi *v1.VirtualMachineInstance, cfg config.Config) resource.Quantity {
	r := vmi.Spec.Domain.Resources
	for _, list := range []k8sv1.ResourceList{r.Requests, r.Limits} {
		if q, ok := list[k8sv1.ResourceCPU]; ok {
			return q
		}
	}
	if cfg.CPURequest != nil {
		return *cfg.CPURequest
	}
	return *resource.NewMilliQuantity((VCPUs(vmi)+PoolCPUs(vmi))*1000/int64(max(1, cfg.CPUAllocationRatio)), resource.DecimalSI)
}

func memoryRequest(vmi *v1.VirtualMachineInstance, cfg config.Config) resource.Quantity {
	q := guestRequest(vmi, cfg)
	if o := vmi.Spec.Domain.Resources.OvercommitGuestOverhead; !o {
		q.Add(Overhead(vmi, cfg))
	}
	return q
}

// guestRequest is what is asked for the guest's memory, but for huge pages.
func guestRequest(vmi *v1.VirtualMachineInstance, cfg config.Config) resource.Quantity {
	d := vmi.Spec.Domain
	for _, list := range []k8sv1.ResourceList{d.Resources.Requests, d.Resources.Limits} {
		if q, ok := list[k8sv1.ResourceMemory]; ok {
			return beside(q, &d)
		}
	}
	if d.Memory == nil || d.Memory.Guest == nil {
		return resource.Quantity{}
	}
	guest := d.Memory.Guest.Value()
	return beside(*resource.NewQuantity(guest*100/int64(max(1, cfg.MemoryOvercommit)), resource.BinarySI), &d)
}

// needsTun tells whether an interface is a tap device of the Pod: all but passed through ones.
func needsTun(vmi *v1.VirtualMachineInstance) bool {
	for _, i := range vmi.Spec.Domain.Devices.Interfaces {
		if i.SRIOV == nil {
			return true
		}
	}
	return false
}

// hasVirtioNIC tells whether packets of the guest could be moved by the host's kernel alone.
func hasVirtioNIC(vmi *v1.VirtualMachineInstance) bool {
	for _, i := range vmi.Spec.Domain.Devices.Interfaces {
		if i.SRIOV == nil && (i.Model == "" || i.Model == v1.VirtIO) {
			return true
		}
	}
	return false
}
