package size

import (
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

// Locked returns how many bytes of memory the QEMU of a defaulted VMI may lock; 0: as many as any process may. A device of
// the node reaches all of the guest's memory, and each has tables of its own for it; what must not be late, and what asks
// for it, is locked once. Source: KubeVirt's API, memory.reservedOverhead.
func Locked(vmi *v1.VirtualMachineInstance, cfg config.Config) int64 {
	d := &vmi.Spec.Domain
	devices := int64(len(d.Devices.GPUs) + len(d.Devices.HostDevices))
	if devices == 0 && !locks(d) {
		return 0
	}
	overhead := Overhead(vmi, cfg)
	return overhead.Value() + most(d)*max(1, devices)
}

// locks tells whether memory is locked for another reason than the node's devices.
func locks(d *v1.DomainSpec) bool {
	if d.CPU != nil && d.CPU.Realtime != nil || d.LaunchSecurity != nil && d.LaunchSecurity.SEV != nil {
		return true
	}
	if d.Memory == nil || d.Memory.ReservedOverhead == nil {
		return false
	}
	lock := d.Memory.ReservedOverhead.MemLock
	return lock != nil && *lock == v1.MemLockRequired
}

// most is the most memory, in bytes, that the guest will have.
func most(d *v1.DomainSpec) int64 {
	if d.Memory != nil && d.Memory.MaxGuest != nil {
		return d.Memory.MaxGuest.Value()
	}
	asked := d.Resources.Requests[k8sv1.ResourceMemory]
	if d.Memory != nil && d.Memory.Guest != nil {
		return max(asked.Value(), d.Memory.Guest.Value())
	}
	return asked.Value()
}
