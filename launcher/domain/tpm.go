package domain

import (
	"libvirt.org/go/libvirtxml"

	"virtstack.io/virtstack/machine/storage"
)

// tpms returns the guest's TPM 2.0. libvirt makes its certificates and runs it beside QEMU; what it holds is among
// libvirt's own files and is gone with the Pod, unless it is kept in a directory of its own.
func (c *converter) tpms() []libvirtxml.DomainTPM {
	t := c.spec().Devices.TPM
	if t == nil || !on(t.Enabled) {
		return nil
	}
	emulator := &libvirtxml.DomainTPMBackendEmulator{Version: "2.0"}
	tpm := libvirtxml.DomainTPM{Model: "tpm-tis", Backend: &libvirtxml.DomainTPMBackend{Emulator: emulator}}
	if storage.KeepsTPM(c.spec()) {
		tpm.Model, emulator.PersistentState = "tpm-crb", "yes"
		emulator.Source = &libvirtxml.DomainTPMBackendSource{Dir: &libvirtxml.DomainTPMBackendSourceDir{Path: c.facts.Firmware.TPM}}
	}
	return []libvirtxml.DomainTPM{tpm}
}
