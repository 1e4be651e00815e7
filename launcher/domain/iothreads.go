package domain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// threadsPerCPU is how many IO threads a guest with the policy auto may have for each CPU that it was given.
const threadsPerCPU = 2

// ioThreads gives virtio disks threads for their IO and returns how many the guest has: 0 leaves IO to QEMU's main
// thread. Threads are counted from 1: first those that disks share in turn, then one for each disk with its own. A SCSI
// bus is one device for all that is on it, and has the first thread if one of its disks wants its own.
func (c *converter) ioThreads(devices *libvirtxml.DomainDeviceList) uint {
	disks := devices.Disks
	own := map[string]bool{} // by alias
	for _, d := range c.spec().Devices.Disks {
		if d.DedicatedIOThread != nil && *d.DedicatedIOThread {
			own[userAlias+d.Name] = true
		}
	}
	policy := c.spec().IOThreadsPolicy
	if policy == nil && len(own) == 0 {
		return 0
	}
	if policy != nil && *policy == v1.IOThreadsPolicySupplementalPool {
		return c.pool(disks)
	}
	var alone, together []*libvirtxml.DomainDisk
	for i := range disks {
		switch {
		case disks[i].Target.Bus == string(v1.DiskBusSCSI) && own[disks[i].Alias.Name]:
			c.threadSCSI(devices.Controllers)
		case disks[i].Target.Bus != string(v1.DiskBusVirtio):
		case own[disks[i].Alias.Name]:
			alone = append(alone, &disks[i])
		default:
			together = append(together, &disks[i])
		}
	}
	shared := uint(1)
	if policy != nil && *policy == v1.IOThreadsPolicyAuto {
		left := int64(threadsPerCPU*c.wholeCPUs()) - int64(len(alone))
		shared = uint(max(1, min(int64(len(together)), left)))
	}
	for i, d := range together {
		d.Driver.IOThread = ptr(1 + uint(i)%shared)
	}
	for i, d := range alone {
		d.Driver.IOThread = ptr(shared + 1 + uint(i))
	}
	return shared + uint(len(alone))
}

// threadSCSI has the SCSI bus served by the first thread, with a queue for each vCPU.
func (c *converter) threadSCSI(controllers []libvirtxml.DomainController) {
	for i := range controllers {
		if controllers[i].Type == "scsi" {
			controllers[i].Driver = &libvirtxml.DomainControllerDriver{Queues: ptr(c.queues()), IOThread: 1}
		}
	}
}

// pool lets every virtio disk use all threads.
func (c *converter) pool(disks []libvirtxml.DomainDisk) uint {
	path := c.path.Child("ioThreads", "supplementalPoolThreadCount")
	pool := c.spec().IOThreads
	if pool == nil || pool.SupplementalPoolThreadCount == nil {
		c.refuse(field.Required(path, "must be at least 1 for ioThreadsPolicy supplementalPool"))
		return 0
	}
	count := *pool.SupplementalPoolThreadCount
	if count < 1 || count > maxVCPUs {
		c.refuse(field.Invalid(path, count, "must be 1 to 4096"))
		return 0
	}
	for i := range disks {
		if disks[i].Target.Bus != string(v1.DiskBusVirtio) {
			continue
		}
		all := &libvirtxml.DomainDiskIOThreads{}
		for id := range uint(count) {
			all.IOThread = append(all.IOThread, libvirtxml.DomainDiskIOThread{ID: id + 1})
		}
		disks[i].Driver.IOThreads = all
	}
	return uint(count)
}

// wholeCPUs are those that the Pod asks for or, without a request, is limited to; at least 1.
func (c *converter) wholeCPUs() int64 {
	r := &c.spec().Resources
	if q := r.Requests.Cpu(); !q.IsZero() {
		return max(1, min(q.Value(), maxVCPUs))
	}
	return max(1, min(r.Limits.Cpu().Value(), maxVCPUs))
}
