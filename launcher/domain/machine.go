package domain

import (
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

const (
	defaultMachine = "q35"
	// tbCacheMiB bounds QEMU's cache of translated code. At 16 MiB a guest boots as fast as with more, at 8 it
	// thrashes; source: measured, docs/performance.md.
	tbCacheMiB = 16
)

func (c *converter) os() *libvirtxml.DomainOS {
	machine := defaultMachine
	if m := c.spec().Machine; m != nil && m.Type != "" {
		machine = m.Type
	}
	os := &libvirtxml.DomainOS{
		Type:   &libvirtxml.DomainOSType{Arch: "x86_64", Machine: machine, Type: "hvm"},
		SMBios: &libvirtxml.DomainSMBios{Mode: "sysinfo"},
	}
	fw := c.spec().Firmware
	if fw == nil || fw.Bootloader == nil || fw.Bootloader.BIOS == nil {
		return os
	}
	if serial := fw.Bootloader.BIOS.UseSerial; serial != nil && *serial {
		os.BIOS = &libvirtxml.DomainBIOS{UseSerial: "yes"}
	}
	return os
}

// sysInfo is what the guest reads from SMBIOS. The vendor's name is KubeVirt's: guests detect it.
func (c *converter) sysInfo() []libvirtxml.DomainSysInfo {
	var system, chassis []libvirtxml.DomainSysInfoEntry
	if fw := c.spec().Firmware; fw != nil {
		system = entry(system, "uuid", string(fw.UUID))
		system = entry(system, "serial", fw.Serial)
	}
	system = entry(system, "manufacturer", "KubeVirt")
	system = entry(system, "family", "KubeVirt")
	system = entry(system, "product", "None")
	smbios := &libvirtxml.DomainSysInfoSMBIOS{System: &libvirtxml.DomainSysInfoSystem{Entry: system}}
	if ch := c.spec().Chassis; ch != nil {
		chassis = entry(chassis, "manufacturer", ch.Manufacturer)
		chassis = entry(chassis, "version", ch.Version)
		chassis = entry(chassis, "serial", ch.Serial)
		chassis = entry(chassis, "asset", ch.Asset)
		chassis = entry(chassis, "sku", ch.Sku)
		smbios.Chassis = &libvirtxml.DomainSysInfoChassis{Entry: chassis}
	}
	return []libvirtxml.DomainSysInfo{{SMBIOS: smbios}}
}

func entry(list []libvirtxml.DomainSysInfoEntry, name, value string) []libvirtxml.DomainSysInfoEntry {
	if value == "" {
		return list
	}
	return append(list, libvirtxml.DomainSysInfoEntry{Name: name, Value: value})
}

func (c *converter) features() *libvirtxml.DomainFeatureList {
	l := &libvirtxml.DomainFeatureList{
		ACPI:   &libvirtxml.DomainFeature{},
		VMPort: &libvirtxml.DomainFeatureState{State: "off"},
	}
	if !c.facts.KVM {
		l.TCG = &libvirtxml.DomainFeatureTCG{TBCache: &libvirtxml.DomainFeatureTCGTBCache{Unit: "MiB", Size: tbCacheMiB}}
	}
	f := c.spec().Features
	if f == nil {
		return l
	}
	if !on(f.ACPI.Enabled) {
		l.ACPI = nil
	}
	if f.APIC != nil && on(f.APIC.Enabled) {
		l.APIC = &libvirtxml.DomainFeatureAPIC{}
	}
	if f.APIC != nil && f.APIC.EndOfInterrupt {
		l.APIC = &libvirtxml.DomainFeatureAPIC{EOI: "on"}
	}
	if f.SMM != nil {
		l.SMM = &libvirtxml.DomainFeatureSMM{State: onOff(f.SMM.Enabled)}
	}
	if f.KVM != nil && c.facts.KVM {
		hidden := onOff(&f.KVM.Hidden)
		l.KVM = &libvirtxml.DomainFeatureKVM{Hidden: &libvirtxml.DomainFeatureState{State: hidden}}
	}
	if f.Pvspinlock != nil {
		l.PVSpinlock = &libvirtxml.DomainFeatureState{State: onOff(f.Pvspinlock.Enabled)}
	}
	return l
}

func (c *converter) clock() *libvirtxml.DomainClock {
	clock := c.spec().Clock
	if clock == nil {
		return nil
	}
	d := &libvirtxml.DomainClock{Offset: "utc", Timer: c.timers(clock.Timer)}
	switch {
	case clock.Timezone != nil:
		d.Offset, d.TimeZone = "timezone", string(*clock.Timezone)
	case clock.UTC != nil && clock.UTC.OffsetSeconds != nil:
		d.Adjustment = strconv.Itoa(*clock.UTC.OffsetSeconds)
	case clock.UTC != nil:
		d.Adjustment = "reset"
	}
	return d
}

func (c *converter) timers(t *v1.Timer) []libvirtxml.DomainTimer {
	if t == nil {
		return nil
	}
	var l []libvirtxml.DomainTimer
	if t.RTC != nil {
		l = append(l, libvirtxml.DomainTimer{Name: "rtc", Track: string(t.RTC.Track), TickPolicy: string(t.RTC.TickPolicy), Present: yesNo(t.RTC.Enabled)})
	}
	if t.PIT != nil {
		l = append(l, libvirtxml.DomainTimer{Name: "pit", TickPolicy: string(t.PIT.TickPolicy), Present: yesNo(t.PIT.Enabled)})
	}
	if t.KVM != nil && c.facts.KVM {
		l = append(l, libvirtxml.DomainTimer{Name: "kvmclock", Present: yesNo(t.KVM.Enabled)})
	}
	if t.HPET != nil {
		l = append(l, libvirtxml.DomainTimer{Name: "hpet", TickPolicy: string(t.HPET.TickPolicy), Present: yesNo(t.HPET.Enabled)})
	}
	if t.Hyperv != nil && c.facts.KVM {
		l = append(l, libvirtxml.DomainTimer{Name: "hypervclock", Present: yesNo(t.Hyperv.Enabled)})
	}
	return l
}

// refuseUnsupported names every part of the spec that would change the machine and that this build can't make. A part
// that only tunes (threads for IO, queues) is left out in silence: the guest is the same without it.
func (c *converter) refuseUnsupported() {
	s, devices := c.spec(), c.path.Child("devices")
	d := &s.Devices
	arch := c.vmi.Spec.Architecture
	if arch != "" && arch != "amd64" {
		c.refuse(field.NotSupported(field.NewPath("spec", "architecture"), arch, []string{"amd64"}))
	}
	if st := c.vmi.Spec.StartStrategy; st != nil {
		c.refuse(field.Forbidden(field.NewPath("spec", "startStrategy"), "not supported yet: leave it out, the guest starts running"))
	}
	for _, r := range []struct {
		path  *field.Path
		found bool
	}{
		{c.path.Child("firmware", "bootloader", "efi"), s.Firmware != nil && s.Firmware.Bootloader != nil && s.Firmware.Bootloader.EFI != nil},
		{c.path.Child("firmware", "kernelBoot"), s.Firmware != nil && s.Firmware.KernelBoot != nil},
		{c.path.Child("firmware", "acpi"), s.Firmware != nil && s.Firmware.ACPI != nil},
		{c.path.Child("features", "hyperv"), s.Features != nil && s.Features.Hyperv != nil},
		{c.path.Child("features", "hypervPassthrough"), s.Features != nil && s.Features.HypervPassthrough != nil},
		{c.path.Child("launchSecurity"), s.LaunchSecurity != nil},
		{c.path.Child("cpu", "numa"), s.CPU != nil && s.CPU.NUMA != nil},
		{c.path.Child("cpu", "realtime"), s.CPU != nil && s.CPU.Realtime != nil},
		{c.path.Child("cpu", "dedicatedCpuPlacement"), s.CPU != nil && s.CPU.DedicatedCPUPlacement},
		{devices.Child("gpus"), len(d.GPUs) > 0},
		{devices.Child("hostDevices"), len(d.HostDevices) > 0},
		{devices.Child("filesystems"), len(d.Filesystems) > 0},
		{devices.Child("downwardMetrics"), d.DownwardMetrics != nil},
		{devices.Child("panicDevices"), len(d.PanicDevices) > 0},
		{devices.Child("clientPassthrough"), d.ClientPassthrough != nil},
		{devices.Child("sound"), d.Sound != nil},
		{devices.Child("tpm"), d.TPM != nil && on(d.TPM.Enabled)},
		{devices.Child("autoattachVSOCK"), d.AutoattachVSOCK != nil && *d.AutoattachVSOCK},
	} {
		if r.found {
			c.refuse(field.Forbidden(r.path, "not supported yet: leave it out"))
		}
	}
}
