package domain

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"libvirt.org/go/libvirtxml"
)

// oneLine is for arguments that were written as several.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ")

// kernel has the firmware start the kernel that the launcher found, with its arguments, instead of what the guest's
// disks hold.
func (c *converter) kernel(os *libvirtxml.DomainOS) {
	fw := c.spec().Firmware
	if fw == nil || fw.KernelBoot == nil {
		return
	}
	k, path := fw.KernelBoot, c.path.Child("firmware", "kernelBoot")
	os.Kernel, os.Initrd = c.facts.Kernel.Kernel, c.facts.Kernel.Initrd
	os.Cmdline = c.text(oneLine.Replace(k.KernelArgs), path.Child("kernelArgs"))
	if os.Kernel == "" && (os.Initrd != "" || os.Cmdline != "") {
		c.refuse(field.Required(path.Child("container", "kernelPath"), "must be given, such as /boot/vmlinuz: an initrd and arguments are for a kernel"))
	}
}
