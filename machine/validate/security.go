package validate

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// minSpinlocks is the fewest tries for a lock after which a guest may tell Hyper-V; source: libvirt.
const minSpinlocks = 4095

// features checks Hyper-V: what one enlightenment needs may be left out, and is added, but not turned off.
func features(domain *field.Path, d *v1.DomainSpec) field.ErrorList {
	f := d.Features
	if f == nil || f.Hyperv == nil {
		return nil
	}
	path, h := domain.Child("features", "hyperv"), f.Hyperv
	if p := f.HypervPassthrough; p != nil && (p.Enabled == nil || *p.Enabled) {
		return field.ErrorList{field.Invalid(path, strings.Join(set(*h), ", "),
			"must be left out beside features.hypervPassthrough, which takes all that the node has")}
	}
	timer := h.SyNICTimer != nil && (h.SyNICTimer.Enabled == nil || *h.SyNICTimer.Enabled)
	flush := h.TLBFlush != nil && (h.TLBFlush.Enabled == nil || *h.TLBFlush.Enabled)
	var errs field.ErrorList
	for _, rule := range []struct {
		needs string
		state *v1.FeatureState
		by    string
		on    bool
	}{
		{"vpindex", h.VPIndex, "synic", enabled(h.SyNIC)},
		{"synic", h.SyNIC, "synictimer", timer},
		{"vpindex", h.VPIndex, "tlbflush", flush},
		{"vpindex", h.VPIndex, "ipi", enabled(h.IPI)},
		{"vapic", h.VAPIC, "evmcs", enabled(h.EVMCS)},
	} {
		if rule.on && disabled(rule.state) {
			errs = append(errs, field.Invalid(path.Child(rule.needs, "enabled"), false,
				rule.by+" needs it: remove this, or "+rule.by))
		}
	}
	if s := h.Spinlocks; s != nil && s.Retries != nil && *s.Retries < minSpinlocks {
		errs = append(errs, field.Invalid(path.Child("spinlocks", "spinlocks"), *s.Retries, "must be at least 4095 retries"))
	}
	if v := h.VendorID; v != nil && enabled(&v.FeatureState) && (v.VendorID == "" || len(v.VendorID) > 12 || len(text(nil, v.VendorID)) > 0) {
		errs = append(errs, field.Invalid(path.Child("vendorid", "vendorid"), short(v.VendorID), "must be 1 to 12 characters, such as KubeVirt"))
	}
	return errs
}

// confidential checks memory encryption, which rules out much of what a machine may have otherwise.
func confidential(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	l := spec.Domain.LaunchSecurity
	if l == nil || architecture(spec) == s390x {
		return nil
	}
	at := path.Child("domain", "launchSecurity")
	if architecture(spec) != amd64 {
		return field.ErrorList{field.Invalid(at, spec.Architecture, "must be left out: only amd64 and s390x have it")}
	}
	found := set(*l)
	if len(found) != 1 {
		return field.ErrorList{field.Forbidden(at, "must have exactly one of sev, snp, tdx")}
	}
	errs := encryptedFirmware(path.Child("domain"), &spec.Domain)
	if l.SEV != nil && l.SEV.Attestation != nil && (spec.StartStrategy == nil || *spec.StartStrategy != v1.StartStrategyPaused) {
		errs = append(errs, field.Required(path.Child("startStrategy"), "must be Paused for launchSecurity.sev.attestation"))
	}
	for i, n := range spec.Domain.Devices.Interfaces {
		if n.BootOrder != nil {
			errs = append(errs, field.Invalid(path.Child("domain", "devices", "interfaces").Index(i).Child("bootOrder"),
				*n.BootOrder, "must be left out beside launchSecurity: such a machine doesn't boot from a network"))
		}
	}
	return errs
}

func encryptedFirmware(domain *field.Path, d *v1.DomainSpec) field.ErrorList {
	l, path := d.LaunchSecurity, domain.Child("firmware", "bootloader", "efi")
	if d.Firmware == nil || d.Firmware.Bootloader == nil || d.Firmware.Bootloader.EFI == nil {
		return field.ErrorList{field.Required(path, "must be given for launchSecurity")}
	}
	var errs field.ErrorList
	efi := d.Firmware.Bootloader.EFI
	if l.TDX == nil && (efi.SecureBoot == nil || *efi.SecureBoot) {
		errs = append(errs, field.Invalid(path.Child("secureBoot"), true, "must be false for launchSecurity sev and snp"))
	}
	if l.SEV == nil && efi.Persistent != nil && *efi.Persistent {
		errs = append(errs, field.Invalid(path.Child("persistent"), true, "must be false for launchSecurity snp and tdx"))
	}
	if l.TDX != nil && d.Features != nil && enabled(d.Features.SMM) {
		errs = append(errs, field.Invalid(domain.Child("features", "smm"), true, "must be off for launchSecurity tdx"))
	}
	return errs
}

// arm checks what an arm64 machine can't have.
func arm(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	if architecture(spec) != arm64 {
		return nil
	}
	domain := path.Child("domain")
	var errs field.ErrorList
	if f := spec.Domain.Firmware; f != nil && f.Bootloader != nil && f.Bootloader.BIOS != nil {
		errs = append(errs, field.NotSupported(domain.Child("firmware", "bootloader"), "bios", []string{"efi"}))
	}
	if c := spec.Domain.CPU; c != nil {
		errs = append(errs, oneOf(domain.Child("cpu", "model"), c.Model, []string{v1.CPUModeHostPassthrough})...)
	}
	for i := range spec.Domain.Devices.Disks {
		d, at := &spec.Domain.Devices.Disks[i], domain.Child("devices", "disks").Index(i)
		kind, bus := busOf(d)
		errs = append(errs, oneOf(at.Child(kind, "bus"), bus, []v1.DiskBus{v1.DiskBusVirtio, v1.DiskBusSCSI})...)
	}
	return errs
}

// busOf returns the target of a disk and its bus; a disk without one is a disk without a bus.
func busOf(d *v1.Disk) (string, v1.DiskBus) {
	switch {
	case d.CDRom != nil:
		return "cdrom", d.CDRom.Bus
	case d.LUN != nil:
		return "lun", d.LUN.Bus
	case d.Disk != nil:
		return "disk", d.Disk.Bus
	}
	return "disk", ""
}
