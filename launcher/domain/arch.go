package domain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// arch is what differs between machines of different architectures. All that the converter knows of one is here: a
// new architecture is a new row.
type arch struct {
	// libvirt's name of it, the emulator's path and the machine type of a spec that names none.
	name, emulator, machine string
	// bios tells that a guest without a boot loader boots by BIOS; else it boots by EFI.
	bios bool
	// vmport and smm are features that only PCs have, maxSockets tells that vCPUs can be added to a running guest.
	vmport, smm, maxSockets bool
	// mpx is a CPU feature that named models may hold and new machines lack.
	mpx bool
	// hintDedicated is a feature by which a guest learns that its CPUs are its own; libvirt gives it only to one that has
	// the host's CPU.
	hintDedicated bool
	// hostModel is the CPU of a guest with KVM that names none. Emulated is that of one without KVM: it boots fastest,
	// and as a named model it is the same on every node.
	hostModel, emulated string
	// diskBus and video are those of a spec that names none; efiVideo that of a guest with EFI.
	diskBus         v1.DiskBus
	video, efiVideo string
	// usb and pointer: the machine always has a USB controller; its screen comes with a tablet and a keyboard.
	usb, pointer bool
}

var arches = map[string]arch{
	"amd64": {
		name: "x86_64", emulator: "/usr/bin/qemu-system-x86_64", machine: "q35",
		bios: true, vmport: true, smm: true, maxSockets: true, mpx: true, hintDedicated: true,
		hostModel: v1.CPUModeHostModel, emulated: "qemu64",
		diskBus: v1.DiskBusSATA, video: "vga", efiVideo: "bochs",
	},
	"arm64": {
		name: "aarch64", emulator: "/usr/bin/qemu-system-aarch64", machine: "virt",
		hostModel: v1.CPUModeHostPassthrough, emulated: "cortex-a57",
		diskBus: v1.DiskBusVirtio, video: "virtio", efiVideo: "virtio",
		usb: true, pointer: true,
	},
}

// lookUpArch returns the VMI's row; a spec that names none is for amd64.
func (c *converter) lookUpArch() arch {
	name := c.vmi.Spec.Architecture
	if name == "" {
		name = "amd64"
	}
	a, found := arches[name]
	if !found {
		c.refuse(field.NotSupported(field.NewPath("spec", "architecture"), name, []string{"amd64", "arm64"}))
		return arches["amd64"]
	}
	return a
}
