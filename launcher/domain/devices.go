package domain

import (
	"libvirt.org/go/libvirtxml"
)

// virtio is the model of every virtio device.
func (c *converter) virtio() string {
	if t := c.spec().Devices.UseVirtioTransitional; t != nil && *t {
		return "virtio-transitional"
	}
	return "virtio-non-transitional"
}

func (c *converter) rngs() []libvirtxml.DomainRNG {
	if c.spec().Devices.Rng == nil {
		return nil
	}
	random := &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}
	return []libvirtxml.DomainRNG{{Model: c.virtio(), Backend: &libvirtxml.DomainRNGBackend{Random: random}}}
}
