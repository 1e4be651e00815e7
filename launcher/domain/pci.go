package domain

import (
	"slices"
	"strconv"

	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

const (
	// maxPorts is how many root ports a machine may have beyond those of its own devices.
	maxPorts = 30
	// firstSlot and lastSlot bound where devices are put on the root; builtIn are those of the chip set.
	firstSlot, lastSlot = 0x02, 0x1e
	builtIn             = 0x1b
)

// controllers gives the machine only the buses it needs, and root ports for its devices and for some that may come.
func (c *converter) controllers(l *libvirtxml.DomainDeviceList) []libvirtxml.DomainController {
	usb := libvirtxml.DomainController{Type: "usb", Index: ptr(uint(0)), Model: "none"}
	if c.arch.usb || onUSB(l) {
		usb.Model = "qemu-xhci"
	}
	out := []libvirtxml.DomainController{usb}
	onSCSI := func(d libvirtxml.DomainDisk) bool { return d.Target.Bus == string(v1.DiskBusSCSI) }
	if slices.ContainsFunc(l.Disks, onSCSI) {
		out = append(out, libvirtxml.DomainController{Type: "scsi", Index: ptr(uint(0)), Model: c.virtio()})
	}
	out = append(out, libvirtxml.DomainController{Type: "virtio-serial", Index: ptr(uint(0)), Model: c.virtio()})
	root := libvirtxml.DomainController{Type: "pci", Index: ptr(uint(0)), Model: "pcie-root"}
	if c.vmi.Annotations[v1.DisablePCIHole64] == "true" {
		root.PCI = &libvirtxml.DomainControllerPCI{Hole64: &libvirtxml.DomainControllerPCIHole64{Unit: "KiB"}}
	}
	places := places(l, out)
	switch {
	case c.vmi.Annotations[v1.PlacePCIDevicesOnRootComplex] == "true":
		for i := range l.Videos {
			places = append(places, &l.Videos[i].Address)
		}
		placeOnRoot(places)
		return append(out, root)
	case c.spec().Devices.DisableHotplug && root.PCI != nil:
		return append(out, root)
	case c.spec().Devices.DisableHotplug:
		return out // libvirt makes the ports that the devices need
	}
	out = append(out, root)
	for range c.rootPorts(len(places), len(l.Interfaces)) {
		out = append(out, libvirtxml.DomainController{Type: "pci", Model: "pcie-root-port"})
	}
	return out
}

func onUSB(l *libvirtxml.DomainDeviceList) bool {
	return slices.ContainsFunc(l.Inputs, func(in libvirtxml.DomainInput) bool { return in.Bus == string(v1.InputBusUSB) }) ||
		slices.ContainsFunc(l.Disks, func(d libvirtxml.DomainDisk) bool { return d.Target.Bus == string(v1.DiskBusUSB) }) ||
		slices.ContainsFunc(l.Hostdevs, func(h libvirtxml.DomainHostdev) bool { return h.SubsysUSB != nil })
}

// places returns where the address goes of each device that is plugged into the PCI bus; a screen is part of the machine.
func places(l *libvirtxml.DomainDeviceList, controllers []libvirtxml.DomainController) []**libvirtxml.DomainAddress {
	var out []**libvirtxml.DomainAddress
	for i := range controllers {
		if controllers[i].Model != "none" {
			out = append(out, &controllers[i].Address)
		}
	}
	for i := range l.Disks {
		if l.Disks[i].Target.Bus == string(v1.DiskBusVirtio) {
			out = append(out, &l.Disks[i].Address)
		}
	}
	for i := range l.Filesystems {
		out = append(out, &l.Filesystems[i].Address)
	}
	for i := range l.Interfaces {
		out = append(out, &l.Interfaces[i].Address)
	}
	for i := range l.Inputs {
		if l.Inputs[i].Bus == string(v1.InputBusVirtio) {
			out = append(out, &l.Inputs[i].Address)
		}
	}
	for i := range l.Hostdevs {
		if l.Hostdevs[i].SubsysUSB == nil {
			out = append(out, &l.Hostdevs[i].Address)
		}
	}
	return append(out, rarePlaces(l)...)
}

// rarePlaces are those of devices of which a machine has one or a few.
func rarePlaces(l *libvirtxml.DomainDeviceList) []**libvirtxml.DomainAddress {
	var out []**libvirtxml.DomainAddress
	for i := range l.Sounds {
		out = append(out, &l.Sounds[i].Address)
	}
	for i := range l.Watchdogs {
		out = append(out, &l.Watchdogs[i].Address)
	}
	if l.MemBalloon.Model != "none" {
		out = append(out, &l.MemBalloon.Address)
	}
	for i := range l.RNGs {
		out = append(out, &l.RNGs[i].Address)
	}
	if l.VSock != nil {
		out = append(out, &l.VSock.Address)
	}
	for i := range l.Panics {
		if l.Panics[i].Model == string(v1.Pvpanic) {
			out = append(out, &l.Panics[i].Address)
		}
	}
	return out
}

// placeOnRoot puts every device that has no address yet straight on the root, in the lowest slots that are free. Those
// for which there is no slot are left to libvirt.
func placeOnRoot(places []**libvirtxml.DomainAddress) {
	taken := map[uint]bool{builtIn: true}
	for _, at := range places {
		if a := *at; a != nil && a.PCI != nil && a.PCI.Slot != nil && (a.PCI.Bus == nil || *a.PCI.Bus == 0) {
			taken[*a.PCI.Slot] = true
		}
	}
	slot := uint(firstSlot)
	for _, at := range places {
		if *at != nil {
			continue
		}
		for taken[slot] {
			slot++
		}
		if slot > lastSlot {
			return
		}
		taken[slot] = true
		*at = &libvirtxml.DomainAddress{PCI: &libvirtxml.DomainAddressPCI{
			Domain: ptr(uint(0)), Bus: ptr(uint(0)), Slot: ptr(slot), Function: ptr(uint(0)),
		}}
	}
}

// rootPorts counts a port for each device on one and the free ones: as many as make 8 in all but at least 3, or 16 and
// 6 for a guest of more than 2 GiB, and as many as there may be interfaces more; never more than 30.
func (c *converter) rootPorts(used, interfaces int) int {
	total, free := 8, 3
	if q, _ := c.guestMemory(); q != nil && q.Value() > 2<<30 {
		total, free = 16, 6
	}
	if n, err := strconv.Atoi(c.vmi.Annotations[v1.PciInterfaceSlotCountAnnotation]); err == nil {
		free = max(free, min(n, maxPorts)-interfaces)
	}
	return min(max(total, used+free), max(maxPorts, used))
}
