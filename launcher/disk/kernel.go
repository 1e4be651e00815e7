package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
)

// Kernel returns the kernel and the initrd that a VMI boots, which lie in the image of its spec under the same rules as
// the disk of a containerDisk. Its error is a *field.Error with the path of the file.
func (d Dirs) Kernel(vmi *v1.VirtualMachineInstance) (domain.Kernel, error) {
	fw := vmi.Spec.Domain.Firmware
	if fw == nil || fw.KernelBoot == nil || fw.KernelBoot.Container == nil {
		return domain.Kernel{}, nil
	}
	c, path := fw.KernelBoot.Container, field.NewPath("spec", "domain", "firmware", "kernelBoot", "container")
	var found domain.Kernel
	for _, f := range []struct {
		field, name string
		at          *string
	}{{"kernelPath", c.KernelPath, &found.Kernel}, {"initrdPath", c.InitrdPath, &found.Initrd}} {
		if f.name == "" {
			continue
		}
		if f.name != filepath.Clean(f.name) || !filepath.IsAbs(f.name) || f.name == "/" {
			return domain.Kernel{}, field.Invalid(path.Child(f.field), f.name, "must be the absolute path of a file in the image, such as /boot/vmlinuz")
		}
		if err := d.bootable(f.name); err != nil {
			return domain.Kernel{}, field.Invalid(path.Child(f.field), f.name, fmt.Sprintf("image %s: %s", c.Image, err))
		}
		*f.at = filepath.Join(d.Boot, f.name)
	}
	return found, nil
}

// bootable opens a file in the image of a kernel, which shows that it is one and may be read.
func (d Dirs) bootable(name string) error {
	root, err := os.OpenRoot(d.Boot)
	if err != nil {
		return fmt.Errorf("opening the image: %w", err)
	}
	defer root.Close()
	f, err := regular(root, strings.TrimPrefix(name, "/"))
	if err != nil {
		return err
	}
	return f.Close()
}
