package validate

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// maxSerial is the most characters of a serial number: of a machine (SMBIOS) and of a disk.
const maxSerial = 256

func firmware(domain *field.Path, d *v1.DomainSpec, from supplies) field.ErrorList {
	f := d.Firmware
	if f == nil {
		return nil
	}
	path := domain.Child("firmware")
	var errs field.ErrorList
	if f.UUID != "" && !isUUID(string(f.UUID)) {
		errs = append(errs, field.Invalid(path.Child("uuid"), short(string(f.UUID)),
			"must be a UUID, such as 5d307ca9-b3ef-428c-8861-06e72d69f223"))
	}
	if b := f.Bootloader; b != nil {
		errs = append(errs, bootloader(path.Child("bootloader"), d, from)...)
	}
	errs = append(errs, serial(path.Child("serial"), f.Serial)...)
	if f.KernelBoot != nil {
		errs = append(errs, kernelBoot(path.Child("kernelBoot"), f.KernelBoot)...)
	}
	return errs
}

func bootloader(path *field.Path, d *v1.DomainSpec, from supplies) field.ErrorList {
	b := d.Firmware.Bootloader
	if found := set(*b); len(found) > 1 {
		return tooMany(path, found)
	}
	if b.EFI == nil || from.preference {
		return nil
	}
	secure := b.EFI.SecureBoot == nil || *b.EFI.SecureBoot
	smm := d.Features != nil && d.Features.SMM != nil && (d.Features.SMM.Enabled == nil || *d.Features.SMM.Enabled)
	if !secure || smm {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("efi", "secureBoot"), true,
		"EFI boots securely unless told otherwise, which needs SMM: "+
			"set firmware.bootloader.efi.secureBoot: false, or features.smm.enabled: true")}
}

func kernelBoot(path *field.Path, k *v1.KernelBoot) field.ErrorList {
	c := k.Container
	at := path.Child("container")
	if c == nil {
		if k.KernelArgs == "" {
			return nil
		}
		return field.ErrorList{field.Required(at, "must hold the kernel that kernelArgs are for")}
	}
	errs := image(at.Child("image"), c.Image)
	errs = append(errs, arguments(path.Child("kernelArgs"), k.KernelArgs)...)
	switch {
	case c.KernelPath == "" && c.InitrdPath == "":
		errs = append(errs, field.Required(at.Child("kernelPath"), "must be given, such as /boot/vmlinuz"))
	case c.KernelPath == "":
		errs = append(errs, field.Required(at.Child("kernelPath"), "must be given with initrdPath: an initrd starts only with a kernel"))
	}
	if c.KernelPath != "" {
		errs = append(errs, filePath(at.Child("kernelPath"), c.KernelPath)...)
	}
	if c.InitrdPath != "" {
		errs = append(errs, filePath(at.Child("initrdPath"), c.InitrdPath)...)
	}
	return errs
}

// tables checks the ACPI tables: each comes from a volume that holds a Secret.
func tables(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	if spec.Domain.Firmware == nil || spec.Domain.Firmware.ACPI == nil {
		return nil
	}
	a := spec.Domain.Firmware.ACPI
	if a.SlicNameRef == "" && a.MsdmNameRef == "" {
		return field.ErrorList{field.Required(path, "must have slicNameRef or msdmNameRef")}
	}
	var errs field.ErrorList
	for _, table := range []struct{ name, volume string }{{"slicNameRef", a.SlicNameRef}, {"msdmNameRef", a.MsdmNameRef}} {
		holds := slices.ContainsFunc(spec.Volumes, func(v v1.Volume) bool { return v.Name == table.volume && v.Secret != nil })
		if table.volume != "" && !holds {
			errs = append(errs, field.Invalid(path.Child(table.name), short(table.volume), "must be the name of one of the machine's volumes with secret"))
		}
	}
	return errs
}

// image wants the name of an image; whether it exists is seen when it is pulled.
func image(path *field.Path, name string) field.ErrorList {
	const right = "such as registry.example/fedora:42"
	if name == "" {
		return field.ErrorList{field.Required(path, "must be the name of an image, "+right)}
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) || len(name) > 1024 {
		return field.ErrorList{field.Invalid(path, short(name),
			"must be the name of an image: printable ASCII without blanks, at most 1024 characters, "+right)}
	}
	return nil
}

// arguments wants what can be written as XML; tabs and new lines stand for blanks.
func arguments(path *field.Path, s string) field.ErrorList {
	odd := func(r rune) bool { return unwritable(r) && !strings.ContainsRune("\t\n\r", r) }
	if !strings.ContainsFunc(s, odd) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, short(s), "must be text without control characters")}
}

func serial(path *field.Path, s string) field.ErrorList {
	other := strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("-_.+", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if !other && len(s) <= maxSerial {
		return nil
	}
	return field.ErrorList{field.Invalid(path, short(s),
		fmt.Sprintf("must be letters, digits, '-', '_', '.' and '+', at most %d of them", maxSerial))}
}

func isUUID(s string) bool {
	groups := strings.Split(s, "-")
	if len(groups) != 5 {
		return false
	}
	for i, length := range []int{8, 4, 4, 4, 12} {
		if _, err := hex.DecodeString(groups[i]); err != nil || len(groups[i]) != length {
			return false
		}
	}
	return true
}
