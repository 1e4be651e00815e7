package instancetype

import (
	"slices"

	"k8s.io/utils/ptr"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
)

// preferTemplate fills what the template leaves open as the preference says; preferAttached has gone before.
func preferTemplate(t *v1.VirtualMachineInstanceTemplateSpec, p *v1beta1.VirtualMachinePreferenceSpec) {
	p = p.DeepCopy()
	s := &t.Spec
	t.ObjectMeta.Annotations = missing(t.ObjectMeta.Annotations, p.Annotations)
	open(&s.TerminationGracePeriodSeconds, p.PreferredTerminationGracePeriodSeconds)
	word(&s.Subdomain, p.PreferredSubdomain)
	word(&s.Architecture, p.PreferredArchitecture)
	if m := p.Machine; m != nil && m.PreferredMachineType != "" {
		if s.Domain.Machine == nil {
			s.Domain.Machine = &v1.Machine{}
		}
		word(&s.Domain.Machine.Type, &m.PreferredMachineType)
	}
	preferCPU(&s.Domain, p.CPU)
	preferClock(&s.Domain, p.Clock)
	preferFirmware(&s.Domain, p.Firmware)
	preferFeatures(&s.Domain, p.Features)
	preferDevices(s, p.Devices)
}

// preferCPU adds CPU features by name.
func preferCPU(d *v1.DomainSpec, p *v1beta1.CPUPreferences) {
	if p == nil || len(p.PreferredCPUFeatures) == 0 {
		return
	}
	if d.CPU == nil {
		d.CPU = &v1.CPU{}
	}
	for _, f := range p.PreferredCPUFeatures {
		if !slices.ContainsFunc(d.CPU.Features, func(has v1.CPUFeature) bool { return has.Name == f.Name }) {
			d.CPU.Features = append(d.CPU.Features, f)
		}
	}
}

func preferClock(d *v1.DomainSpec, p *v1beta1.ClockPreferences) {
	if p == nil {
		return
	}
	if d.Clock == nil {
		d.Clock = &v1.Clock{}
	}
	if d.Clock.UTC == nil && d.Clock.Timezone == nil && p.PreferredClockOffset != nil {
		d.Clock.ClockOffset = *p.PreferredClockOffset
	}
	open(&d.Clock.Timer, p.PreferredTimer)
}

func preferFirmware(d *v1.DomainSpec, p *v1beta1.FirmwarePreferences) {
	if p == nil {
		return
	}
	if d.Firmware == nil {
		d.Firmware = &v1.Firmware{}
	}
	b := d.Firmware.Bootloader
	if b == nil {
		b = &v1.Bootloader{}
	}
	switch {
	case b.BIOS == nil && b.EFI == nil && p.PreferredEfi != nil:
		b.EFI = p.PreferredEfi
	case b.BIOS == nil && b.EFI == nil && ptr.Deref(p.DeprecatedPreferredUseEfi, false):
		b.EFI = &v1.EFI{}
	case b.BIOS == nil && b.EFI == nil && ptr.Deref(p.PreferredUseBios, false):
		b.BIOS = &v1.BIOS{}
	}
	if b.BIOS != nil || b.EFI != nil {
		d.Firmware.Bootloader = b
	}
	if b.BIOS != nil {
		open(&b.BIOS.UseSerial, p.PreferredUseBiosSerial)
	}
	if b.EFI != nil && p.PreferredEfi == nil {
		open(&b.EFI.SecureBoot, p.DeprecatedPreferredUseSecureBoot)
	}
}

func preferFeatures(d *v1.DomainSpec, p *v1beta1.FeaturePreferences) {
	if p == nil {
		return
	}
	if d.Features == nil {
		d.Features = &v1.Features{}
	}
	f := d.Features
	set(&f.ACPI, p.PreferredAcpi)
	open(&f.APIC, p.PreferredApic)
	open(&f.KVM, p.PreferredKvm)
	open(&f.Pvspinlock, p.PreferredPvspinlock)
	open(&f.SMM, p.PreferredSmm)
	if p.PreferredHyperv == nil {
		return
	}
	if f.Hyperv == nil {
		f.Hyperv = &v1.FeatureHyperv{}
	}
	preferHyperv(f.Hyperv, p.PreferredHyperv)
}

func preferHyperv(h, p *v1.FeatureHyperv) {
	open(&h.Relaxed, p.Relaxed)
	open(&h.VAPIC, p.VAPIC)
	open(&h.Spinlocks, p.Spinlocks)
	open(&h.VPIndex, p.VPIndex)
	open(&h.Runtime, p.Runtime)
	open(&h.SyNIC, p.SyNIC)
	open(&h.SyNICTimer, p.SyNICTimer)
	open(&h.Reset, p.Reset)
	open(&h.VendorID, p.VendorID)
	open(&h.Frequencies, p.Frequencies)
	open(&h.Reenlightenment, p.Reenlightenment)
	open(&h.TLBFlush, p.TLBFlush)
	open(&h.IPI, p.IPI)
	open(&h.EVMCS, p.EVMCS)
}

// preferStorage gives a storage class to the templates of DataVolumes that name none.
func preferStorage(templates []v1.DataVolumeTemplateSpec, p *v1beta1.VolumePreferences) {
	if p == nil || p.PreferredStorageClassName == "" {
		return
	}
	for i := range templates {
		class := p.PreferredStorageClassName
		if s := templates[i].Spec.PVC; s != nil {
			open(&s.StorageClassName, &class)
		}
		if s := templates[i].Spec.Storage; s != nil {
			open(&s.StorageClassName, &class)
		}
	}
}

// open fills a pointer that is nil.
func open[T any](to **T, from *T) {
	if *to == nil && from != nil {
		v := *from
		*to = &v
	}
}

// word fills a string that is empty.
func word[T ~string](to *T, from *T) {
	if *to == "" && from != nil {
		*to = *from
	}
}
