package domain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// tbCacheMiB bounds QEMU's cache of translated code. At 16 MiB a guest's kernel is translated over and again, at 32 MiB
// it boots in two thirds of the time, above that no faster; source: measured, docs/performance.md.
const tbCacheMiB = 32

// Bounds of Hyper-V's settings; source: Hyper-V's specification as QEMU implements it.
const (
	spinlockRetries    = 4096
	minSpinlockRetries = 0xfff
	maxVendorID        = 12
)

func (c *converter) features() *libvirtxml.DomainFeatureList {
	l := &libvirtxml.DomainFeatureList{ACPI: &libvirtxml.DomainFeature{}}
	if c.arch.vmport {
		l.VMPort = state(false)
	}
	if !c.facts.KVM {
		l.TCG = &libvirtxml.DomainFeatureTCG{TBCache: &libvirtxml.DomainFeatureTCGTBCache{Unit: "MiB", Size: tbCacheMiB}}
	}
	if f := c.spec().Features; f != nil {
		c.asked(l, f)
	}
	if isRealtime(c.spec()) {
		l.PMU = state(false) // its interrupts would come between
	}
	if c.pins != nil && c.facts.KVM && c.arch.hintDedicated && c.spec().CPU.Model == v1.CPUModeHostPassthrough {
		if l.KVM == nil {
			l.KVM = &libvirtxml.DomainFeatureKVM{}
		}
		l.KVM.HintDedicated = state(true)
	}
	return l
}

// asked adds the features that the spec names.
func (c *converter) asked(l *libvirtxml.DomainFeatureList, f *v1.Features) {
	if !on(f.ACPI.Enabled) {
		l.ACPI = nil
	}
	if f.APIC != nil && on(f.APIC.Enabled) {
		l.APIC = &libvirtxml.DomainFeatureAPIC{}
	}
	if f.APIC != nil && f.APIC.EndOfInterrupt {
		l.APIC = &libvirtxml.DomainFeatureAPIC{EOI: "on"}
	}
	if f.SMM != nil && c.arch.smm {
		l.SMM = &libvirtxml.DomainFeatureSMM{State: onOff(f.SMM.Enabled)}
	}
	if f.KVM != nil && c.facts.KVM {
		l.KVM = &libvirtxml.DomainFeatureKVM{Hidden: state(f.KVM.Hidden)}
	}
	if f.Pvspinlock != nil {
		l.PVSpinlock = state(on(f.Pvspinlock.Enabled))
	}
	l.HyperV = c.hyperv(f)
}

func state(enabled bool) *libvirtxml.DomainFeatureState {
	return &libvirtxml.DomainFeatureState{State: onOff(&enabled)}
}

// flag is a feature that is there if the spec has it.
func flag(f *v1.FeatureState) *libvirtxml.DomainFeatureState {
	if f == nil {
		return nil
	}
	return state(on(f.Enabled))
}

// hyperv is what a Windows guest finds of Hyper-V. Emulation has none of it, and a guest that asks for it is the same
// without, only slower.
func (c *converter) hyperv(f *v1.Features) *libvirtxml.DomainFeatureHyperV {
	path := c.path.Child("features", "hyperv")
	passthrough := f.HypervPassthrough != nil && on(f.HypervPassthrough.Enabled)
	if passthrough && f.Hyperv != nil {
		c.refuse(field.Forbidden(path, "hypervPassthrough gives all that the host has: leave one of the two out"))
	}
	if f.Hyperv != nil {
		c.checkHyperv(f.Hyperv, path)
	}
	switch {
	case !c.facts.KVM:
		return nil
	case passthrough:
		return &libvirtxml.DomainFeatureHyperV{Mode: "passthrough"}
	case f.Hyperv == nil:
		return nil
	}
	return enlightenments(f.Hyperv)
}

func (c *converter) checkHyperv(h *v1.FeatureHyperv, path *field.Path) {
	if s := h.Spinlocks; s != nil && s.Retries != nil && *s.Retries < minSpinlockRetries {
		c.refuse(field.Invalid(path.Child("spinlocks", "spinlocks"), *s.Retries, "must be at least 4095"))
	}
	if v := h.VendorID; v != nil && on(v.Enabled) {
		c.text(v.VendorID, path.Child("vendorid", "vendorid"))
		if v.VendorID == "" || len(v.VendorID) > maxVendorID {
			c.refuse(field.Invalid(path.Child("vendorid", "vendorid"), v.VendorID, "must be 1 to 12 characters"))
		}
	}
}

func enlightenments(h *v1.FeatureHyperv) *libvirtxml.DomainFeatureHyperV {
	d := &libvirtxml.DomainFeatureHyperV{
		Mode:    "custom",
		Relaxed: flag(h.Relaxed), VAPIC: flag(h.VAPIC), VPIndex: flag(h.VPIndex), Runtime: flag(h.Runtime),
		Synic: flag(h.SyNIC), Reset: flag(h.Reset), Frequencies: flag(h.Frequencies),
		ReEnlightenment: flag(h.Reenlightenment), IPI: flag(h.IPI), EVMCS: flag(h.EVMCS),
	}
	if s := h.Spinlocks; s != nil {
		d.Spinlocks = &libvirtxml.DomainFeatureHyperVSpinlocks{DomainFeatureState: *flag(&s.FeatureState)}
		if on(s.Enabled) {
			d.Spinlocks.Retries = spinlockRetries
		}
		if s.Retries != nil && on(s.Enabled) {
			d.Spinlocks.Retries = uint(*s.Retries)
		}
	}
	if s := h.SyNICTimer; s != nil {
		d.STimer = &libvirtxml.DomainFeatureHyperVSTimer{DomainFeatureState: *flag(&s.FeatureState)}
		if on(s.Enabled) {
			d.STimer.Direct = flag(s.Direct)
		}
	}
	if v := h.VendorID; v != nil {
		d.VendorId = &libvirtxml.DomainFeatureHyperVVendorId{DomainFeatureState: *flag(&v.FeatureState)}
		if on(v.Enabled) {
			d.VendorId.Value = v.VendorID
		}
	}
	if t := h.TLBFlush; t != nil {
		d.TLBFlush = &libvirtxml.DomainFeatureHyperVTLBFlush{DomainFeatureState: *flag(&t.FeatureState)}
		if on(t.Enabled) {
			d.TLBFlush.Direct, d.TLBFlush.Extended = flag(t.Direct), flag(t.Extended)
		}
	}
	return d
}
