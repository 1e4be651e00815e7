package domain

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"libvirt.org/go/libvirtxml"
)

// vsock is the guest's end of a socket to its node, under the context id that virt-controller has chosen.
func (c *converter) vsock() *libvirtxml.DomainVSock {
	if wanted := c.spec().Devices.AutoattachVSOCK; wanted == nil || !*wanted {
		return nil
	}
	id := c.vmi.Status.VSOCKCID
	if id == nil {
		c.refuse(field.Required(field.NewPath("status", "VSOCKCID"), "virt-controller gives each VMI with spec.domain.devices.autoattachVSOCK one"))
		return nil
	}
	return &libvirtxml.DomainVSock{
		Model: "virtio-non-transitional",
		CID:   &libvirtxml.DomainVSockCID{Auto: "no", Address: strconv.FormatUint(uint64(*id), 10)},
	}
}
