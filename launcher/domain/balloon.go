package domain

import (
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// statsPeriod is how often the guest is asked for its memory figures where nothing else is configured, in seconds.
const statsPeriod = 10

// balloon takes memory back from the guest and asks it for its figures.
func (c *converter) balloon() *libvirtxml.DomainMemBalloon {
	if !on(c.spec().Devices.AutoattachMemBalloon) {
		return &libvirtxml.DomainMemBalloon{Model: "none"}
	}
	b := &libvirtxml.DomainMemBalloon{Model: c.virtio()}
	if c.givesFreePagesBack() {
		b.FreePageReporting = "on"
	}
	period := uint(statsPeriod)
	if p := c.facts.Balloon.StatsPeriod; p != nil {
		period = *p
	}
	if period > 0 {
		b.Stats = &libvirtxml.DomainMemBalloonStats{Period: period}
	}
	return b
}

// givesFreePagesBack tells whether pages that the guest doesn't use are given back to the node as it frees them. A guest
// that has its memory or CPUs for itself would only lose time by it.
func (c *converter) givesFreePagesBack() bool {
	s := c.spec()
	alone := s.Memory != nil && s.Memory.Hugepages != nil || s.CPU != nil && (s.CPU.DedicatedCPUPlacement || s.CPU.Realtime != nil)
	return !alone && !c.facts.Balloon.KeepFreePages && c.vmi.Annotations[v1.FreePageReportingDisabledAnnotation] != "true"
}
