package domain

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"virtstack.io/virtstack/machine/size"
)

// HostCPU is one of the node's CPUs: a thread of a core.
type HostCPU struct {
	// ID is its number on the node. Core is that of the first thread of its core, Cell that of its NUMA cell.
	ID, Core, Cell uint
}

// pins are the node's CPUs that a guest has for itself.
type pins struct {
	// vcpus are by the number of the virtual CPU.
	vcpus []HostCPU
	// emulator are for QEMU's other threads; pool are for a pool of IO threads, one each.
	emulator, pool []HostCPU
}

// pin hands the Pod's CPUs out; nil: the guest shares those of its node.
func (c *converter) pin() *pins {
	cpu := c.spec().CPU
	if cpu == nil || !cpu.DedicatedCPUPlacement {
		return nil
	}
	sockets, cores, threads := c.topology()
	guestCores, perCore := uint64(sockets)*uint64(cores), uint64(threads)
	if guestCores > maxVCPUs || guestCores*perCore > maxVCPUs {
		return nil // vcpus refuses it
	}
	pool := size.PoolCPUs(c.vmi)
	emulator := size.EmulatorCPUs(c.vmi, int64(guestCores*perCore)+pool)
	path := c.path.Child("cpu", "dedicatedCpuPlacement")
	if need := int64(guestCores*perCore) + pool + emulator; need != int64(len(c.facts.CPUs)) {
		c.refuse(field.Invalid(path, true, fmt.Sprintf("the Pod must have %d CPUs of its node for itself and may run on %d: "+
			"the node's kubelet needs cpuManagerPolicy static", need, len(c.facts.CPUs))))
		return nil
	}
	left := &free{slices.SortedFunc(slices.Values(c.facts.CPUs), func(a, b HostCPU) int {
		return cmp.Or(cmp.Compare(a.Cell, b.Cell), cmp.Compare(a.Core, b.Core), cmp.Compare(a.ID, b.ID))
	})}
	p := &pins{}
	for range guestCores {
		got := left.core(int(perCore), !c.mapsNUMA())
		if got == nil {
			c.refuse(field.Invalid(c.path.Child("cpu", "threads"), threads, "must be 1 where the Pod's CPUs don't make up cores of that many within a NUMA cell"))
			return nil
		}
		p.vcpus = append(p.vcpus, got...)
	}
	p.pool, p.emulator = left.take(int(pool), anywhere), left.take(int(emulator), anywhere)
	return p
}

// free are CPUs that are not handed out yet, those of a cell and of a core side by side.
type free struct{ left []HostCPU }

func sameCore(a, b HostCPU) bool     { return a.Cell == b.Cell && a.Core == b.Core }
func sameCell(a, b HostCPU) bool     { return a.Cell == b.Cell }
func anywhere(HostCPU, HostCPU) bool { return true }

// core takes the threads of a guest's core: those of one core of the node if there is one, else some of one cell, else,
// where they may be apart, any.
func (f *free) core(threads int, apart bool) []HostCPU {
	got := f.take(threads, sameCore)
	if got == nil {
		got = f.take(threads, sameCell)
	}
	if got == nil && apart {
		got = f.take(threads, anywhere)
	}
	return got
}

// take takes the first n that lie together; nil where there are none.
func (f *free) take(n int, together func(a, b HostCPU) bool) []HostCPU {
	for i := 0; i+n <= len(f.left) && n > 0; i++ {
		if together(f.left[i], f.left[i+n-1]) {
			got := slices.Clone(f.left[i : i+n])
			f.left = slices.Delete(f.left, i, i+n)
			return got
		}
	}
	return nil
}
