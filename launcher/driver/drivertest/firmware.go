package drivertest

import (
	"path/filepath"
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver"
)

func uefi(t *testing.T, d Driver) { starts(t, d, withEFI(t, false)) }

func secureUEFI(t *testing.T, d Driver) { starts(t, d, withEFI(t, true)) }

// starts shows that a guest with the edits runs.
func starts(t *testing.T, d Driver, edits ...edit) { runs(t, d, guest(t, edits...)) }

func runs(t *testing.T, d Driver, xml string) {
	must(t, d.Define(t.Context(), xml))
	must(t, d.Start(t.Context(), driver.Running))
	await(t, d, driver.Running)
}

func withEFI(t *testing.T, secure bool) edit {
	vars := filepath.Join(short(t), "nvram.fd")
	return func(d *v1.DomainSpec, facts *domain.Facts) {
		d.Firmware.Bootloader = &v1.Bootloader{EFI: &v1.EFI{SecureBoot: &secure}}
		d.Features = &v1.Features{SMM: &v1.FeatureState{Enabled: &secure}}
		facts.Firmware = domain.ImageFirmware(vars)
	}
}

// keepsState shows that libvirt makes the files of a guest's state where the launcher wants them.
func keepsState(t *testing.T, d Driver) {
	dir, yes := short(t), true
	vars, tpm := filepath.Join(dir, "nvram.fd"), filepath.Join(dir, "tpm")
	starts(t, d, withEFI(t, false), func(spec *v1.DomainSpec, facts *domain.Facts) {
		spec.Firmware.Bootloader.EFI.Persistent = &yes
		spec.Devices.TPM = &v1.TPMDevice{Persistent: &yes}
		facts.Firmware.Vars, facts.Firmware.TPM = vars, tpm
	})
}
