package disk

import (
	"os"
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/domain"
)

func TestWhatIsKeptIsOnItsClaim(t *testing.T) {
	const efi, tpm = "firmware: {bootloader: {efi: {persistent: true}}}", "devices: {tpm: {persistent: true}}"
	const badVars, badTPM = "spec.domain.firmware.bootloader.efi.persistent: Invalid value: true: nvram.fd on", "spec.domain.devices.tpm.persistent: Invalid value: true: tpm on"
	link := func(name string) func(dir string) error {
		return func(dir string) error { return os.Symlink("/etc/passwd", dir+"/"+name) }
	}
	nothing := func(string) error { return nil }
	for name, tc := range map[string]struct {
		spec string
		make func(dir string) error
		vars string
		tpm  string
		err  string
	}{
		"nothing":         {"{}", link("nvram.fd"), "/disks/nvram.fd", "", ""},
		"new variables":   {"{" + efi + "}", nothing, "STATE/nvram.fd", "", ""},
		"old variables":   {"{" + efi + "}", func(d string) error { return os.WriteFile(d+"/nvram.fd", nil, 0o600) }, "STATE/nvram.fd", "", ""},
		"new TPM":         {"{" + tpm + "}", nothing, "/disks/nvram.fd", "STATE/tpm", ""},
		"old TPM":         {"{" + tpm + "}", func(d string) error { return os.Mkdir(d+"/tpm", 0o700) }, "/disks/nvram.fd", "STATE/tpm", ""},
		"both":            {"{" + efi + ", " + tpm + "}", nothing, "STATE/nvram.fd", "STATE/tpm", ""},
		"variables, link": {"{" + efi + "}", link("nvram.fd"), "", "", badVars},
		"variables, dir":  {"{" + efi + "}", func(d string) error { return os.Mkdir(d+"/nvram.fd", 0o700) }, "", "", badVars},
		"TPM, link":       {"{" + tpm + "}", link("tpm"), "", "", badTPM},
		"TPM, file":       {"{" + tpm + "}", func(d string) error { return os.WriteFile(d+"/tpm", nil, 0o600) }, "", "", badTPM},
	} {
		t.Run(name, func(t *testing.T) {
			vmi, d := &v1.VirtualMachineInstance{}, Dirs{State: t.TempDir()}
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &vmi.Spec.Domain); err != nil {
				t.Fatal(err)
			}
			if err := tc.make(d.State); err != nil {
				t.Fatal(err)
			}
			got, err := d.Keep(vmi, domain.Firmware{Vars: "/disks/nvram.fd"})
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) {
					t.Errorf("got %+v, %v; want %s", got, err, tc.err)
				}
				return
			}
			want := domain.Firmware{Vars: strings.Replace(tc.vars, "STATE", d.State, 1), TPM: strings.Replace(tc.tpm, "STATE", d.State, 1)}
			if err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
}
