package instancetype

import (
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
)

func setCPU(d *v1.DomainSpec, from v1beta1.CPUInstancetype, how topology) {
	if d.CPU == nil {
		d.CPU = &v1.CPU{}
	}
	c := d.CPU
	c.Sockets, c.Cores, c.Threads = how.split(from.Guest)
	set(&c.Model, from.Model)
	set(&c.DedicatedCPUPlacement, from.DedicatedCPUPlacement)
	set(&c.IsolateEmulatorThread, from.IsolateEmulatorThread)
	set(&c.MaxSockets, from.MaxSockets)
	if from.NUMA != nil {
		c.NUMA = from.NUMA
	}
	if from.Realtime != nil {
		c.Realtime = from.Realtime
	}
}

func setMemory(d *v1.DomainSpec, from v1beta1.MemoryInstancetype) {
	if d.Memory == nil {
		d.Memory = &v1.Memory{}
	}
	d.Memory.Guest = &from.Guest
	if from.Hugepages != nil {
		d.Memory.Hugepages = from.Hugepages
	}
	if from.MaxGuest != nil {
		d.Memory.MaxGuest = from.MaxGuest
	}
	if from.OvercommitPercent <= 0 {
		return
	}
	if d.Resources.Requests == nil {
		d.Resources.Requests = k8sv1.ResourceList{}
	}
	d.Resources.Requests[k8sv1.ResourceMemory] = requested(from.Guest, from.OvercommitPercent)
}

// requested returns the memory that a Pod asks for when percent of the guest's is given out twice. It is reckoned with
// 32 bits, as KubeVirt does, so that quotas see the same number.
func requested(guest resource.Quantity, percent int) resource.Quantity {
	kept := 1 - float32(percent)/100
	return *resource.NewQuantity(int64(float32(guest.Value())*kept), guest.Format)
}

// topology is how a number of vCPUs becomes sockets, cores and threads.
type topology struct {
	prefer v1beta1.PreferredCPUTopology
	across v1beta1.SpreadAcross
	ratio  uint32
}

// defaultRatio is the number of cores to a socket, or threads to a core, of a spread that names none.
const defaultRatio = 2

// topologyOf returns the topology that a preference wants; sockets, if it doesn't say.
func topologyOf(p *v1beta1.VirtualMachinePreferenceSpec) topology {
	t := topology{prefer: v1beta1.Sockets, across: v1beta1.SpreadAcrossSocketsCores, ratio: defaultRatio}
	if p == nil {
		return t
	}
	if p.PreferSpreadSocketToCoreRatio != 0 {
		t.ratio = p.PreferSpreadSocketToCoreRatio
	}
	if p.CPU == nil {
		return t
	}
	if p.CPU.PreferredCPUTopology != nil {
		t.prefer = current(*p.CPU.PreferredCPUTopology)
	}
	if o := p.CPU.SpreadOptions; o != nil {
		set(&t.across, o.Across)
		set(&t.ratio, o.Ratio)
	}
	if t.ratio == 0 {
		t.ratio = defaultRatio
	}
	return t
}

// current returns the name of today for a topology.
func current(t v1beta1.PreferredCPUTopology) v1beta1.PreferredCPUTopology {
	switch t {
	case v1beta1.DeprecatedPreferCores:
		return v1beta1.Cores
	case v1beta1.DeprecatedPreferThreads:
		return v1beta1.Threads
	case v1beta1.DeprecatedPreferSpread:
		return v1beta1.Spread
	case v1beta1.Cores, v1beta1.Threads, v1beta1.Spread:
		return t
	}
	return v1beta1.Sockets
}

// split returns a topology of n vCPUs. A spread that doesn't divide n loses the rest: Conflicts' caller asks
// CheckRequirements first, which refuses it.
func (t topology) split(n uint32) (sockets, cores, threads uint32) {
	if n <= 1 {
		return 1, 1, 1
	}
	switch t.prefer {
	case v1beta1.Cores:
		return 1, n, 1
	case v1beta1.Threads:
		return 1, 1, n
	case v1beta1.Spread:
		return t.spread(n)
	}
	return n, 1, 1
}

func (t topology) spread(n uint32) (sockets, cores, threads uint32) {
	switch t.across {
	case v1beta1.SpreadAcrossCoresThreads:
		return 1, n / t.ratio, t.ratio
	case v1beta1.SpreadAcrossSocketsCoresThreads:
		return n / 2 / t.ratio, t.ratio, 2
	}
	return n / t.ratio, t.ratio, 1
}

// divides tells whether the topology can hold exactly n vCPUs, and what n must be a multiple of.
func (t topology) divides(n uint32) (uint64, bool) {
	if t.prefer != v1beta1.Spread || n <= 1 {
		return 1, true
	}
	step := uint64(t.ratio)
	if t.across == v1beta1.SpreadAcrossSocketsCoresThreads {
		step *= 2
	}
	return step, uint64(n)%step == 0
}

// set copies a value that is given.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
