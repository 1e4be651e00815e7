package domain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"libvirt.org/go/libvirtxml"
)

// tpms returns the guest's TPM 2.0. libvirt makes its certificates and runs it beside QEMU; what it holds is among
// libvirt's own files and is gone with the Pod.
func (c *converter) tpms() []libvirtxml.DomainTPM {
	t := c.spec().Devices.TPM
	if t == nil || !on(t.Enabled) {
		return nil
	}
	if t.Persistent != nil && *t.Persistent {
		c.refuse(field.Invalid(c.path.Child("devices", "tpm", "persistent"), true,
			"must be false or left out: what outlives the Pod needs a claim of its own, which is not supported yet"))
	}
	return []libvirtxml.DomainTPM{{
		Model:   "tpm-tis",
		Backend: &libvirtxml.DomainTPMBackend{Emulator: &libvirtxml.DomainTPMBackendEmulator{Version: "2.0"}},
	}}
}
