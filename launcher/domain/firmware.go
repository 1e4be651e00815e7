package domain

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

func (c *converter) os() *libvirtxml.DomainOS {
	machine := c.arch.machine
	if m := c.spec().Machine; m != nil && m.Type != "" {
		machine = m.Type
	}
	os := &libvirtxml.DomainOS{
		Type:   &libvirtxml.DomainOSType{Arch: c.arch.name, Machine: machine, Type: "hvm"},
		SMBios: &libvirtxml.DomainSMBios{Mode: "sysinfo"},
	}
	var b *v1.Bootloader
	if fw := c.spec().Firmware; fw != nil {
		b = fw.Bootloader
	}
	c.bootloader(os, b)
	os.ACPI = c.tables()
	c.kernel(os)
	return os
}

// tables are ACPI tables that the guest has besides the machine's: licences, of which each is a file.
func (c *converter) tables() *libvirtxml.DomainACPI {
	fw := c.spec().Firmware
	if fw == nil || fw.ACPI == nil {
		return nil
	}
	path := c.path.Child("firmware", "acpi")
	acpi := &libvirtxml.DomainACPI{}
	for _, t := range []struct{ kind, field, volume string }{{"slic", "slicNameRef", fw.ACPI.SlicNameRef}, {"msdm", "msdmNameRef", fw.ACPI.MsdmNameRef}} {
		file := c.facts.Tables[t.kind]
		switch {
		case t.volume == "":
		case file == "":
			c.refuse(field.Invalid(path.Child(t.field), t.volume, "must be the name of a volume with a secret that has the key "+t.kind+".bin"))
		default:
			acpi.Tables = append(acpi.Tables, libvirtxml.DomainACPITable{Type: t.kind, Path: file})
		}
	}
	return acpi
}

// bootloader settles the firmware: BIOS, which is QEMU's own, or EFI from the launcher's image.
func (c *converter) bootloader(os *libvirtxml.DomainOS, b *v1.Bootloader) {
	if b == nil {
		b = &v1.Bootloader{}
	}
	path := c.path.Child("firmware", "bootloader")
	switch {
	case b.EFI != nil && b.BIOS != nil:
		c.refuse(field.Forbidden(path, "bios and efi are given: choose one"))
	case b.EFI != nil:
		c.efi(os, b.EFI, path.Child("efi"))
	case !c.arch.bios:
		plain := false
		c.efi(os, &v1.EFI{SecureBoot: &plain}, path.Child("efi"))
	case b.BIOS != nil && b.BIOS.UseSerial != nil && *b.BIOS.UseSerial:
		os.BIOS = &libvirtxml.DomainBIOS{UseSerial: "yes"}
	}
}

// usesEFI tells whether the guest boots by EFI.
func (c *converter) usesEFI() bool {
	fw := c.spec().Firmware
	return !c.arch.bios || fw != nil && fw.Bootloader != nil && fw.Bootloader.EFI != nil
}

// efi uses one file of code for all guests and gives this guest variables of its own, which start as a copy.
func (c *converter) efi(os *libvirtxml.DomainOS, e *v1.EFI, path *field.Path) {
	build, secure := c.facts.Firmware.Plain, "no"
	if on(e.SecureBoot) {
		build, secure = c.facts.Firmware.Secure, "yes"
		c.needSMM(path.Child("secureBoot"))
	}
	if build.Code == "" || build.Vars == "" {
		c.refuse(field.Invalid(path.Child("secureBoot"), on(e.SecureBoot), "the launcher's image has no such firmware for this architecture: choose the other value"))
		return
	}
	os.Loader = &libvirtxml.DomainLoader{Path: build.Code, Readonly: "yes", Secure: secure, Type: "pflash"}
	os.NVRam = &libvirtxml.DomainNVRam{NVRam: c.facts.Firmware.Vars, Template: build.Vars}
}

// needSMM refuses secure boot where the guest could write to the variables that guard it.
func (c *converter) needSMM(path *field.Path) {
	f := c.spec().Features
	if !c.arch.smm || f != nil && f.SMM != nil && on(f.SMM.Enabled) {
		return
	}
	c.refuse(field.Invalid(path, true, "EFI boots securely unless told otherwise, which needs SMM: set firmware.bootloader.efi.secureBoot: false, or features.smm.enabled: true"))
}

// sysInfo is what the guest reads from SMBIOS. The maker of a guest that is told of no other is KubeVirt: guests detect
// it.
func (c *converter) sysInfo() []libvirtxml.DomainSysInfo {
	var system, chassis entries
	if fw := c.spec().Firmware; fw != nil {
		path := c.path.Child("firmware")
		system.add("uuid", string(fw.UUID))
		system.add("serial", c.text(fw.Serial, path.Child("serial")))
	}
	maker, path := c.facts.SMBIOS, field.NewPath("configuration", "smbios") // of the KubeVirt
	system.add("manufacturer", c.text(cmp.Or(maker.Manufacturer, "KubeVirt"), path.Child("manufacturer")))
	system.add("family", c.text(cmp.Or(maker.Family, "KubeVirt"), path.Child("family")))
	system.add("product", c.text(cmp.Or(maker.Product, "None"), path.Child("product")))
	system.add("sku", c.text(maker.SKU, path.Child("sku")))
	system.add("version", c.text(maker.Version, path.Child("version")))
	smbios := &libvirtxml.DomainSysInfoSMBIOS{System: &libvirtxml.DomainSysInfoSystem{Entry: system}}
	if ch := c.spec().Chassis; ch != nil {
		path := c.path.Child("chassis")
		chassis.add("manufacturer", c.text(ch.Manufacturer, path.Child("manufacturer")))
		chassis.add("version", c.text(ch.Version, path.Child("version")))
		chassis.add("serial", c.text(ch.Serial, path.Child("serial")))
		chassis.add("asset", c.text(ch.Asset, path.Child("asset")))
		chassis.add("sku", c.text(ch.Sku, path.Child("sku")))
		smbios.Chassis = &libvirtxml.DomainSysInfoChassis{Entry: chassis}
	}
	return []libvirtxml.DomainSysInfo{{SMBIOS: smbios}}
}

// entries are lines of an SMBIOS table.
type entries []libvirtxml.DomainSysInfoEntry

func (e *entries) add(name, value string) {
	if value != "" {
		*e = append(*e, libvirtxml.DomainSysInfoEntry{Name: name, Value: value})
	}
}

// text refuses what can't be written as XML: the library would put another character in its place in silence.
func (c *converter) text(s string, path *field.Path) string {
	bad := func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' || r == '\uFFFE' || r == '\uFFFF' }
	if slices.ContainsFunc([]rune(s), bad) {
		c.refuse(field.Invalid(path, s, "must be text without control characters"))
	}
	return s
}
