package storage

import (
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

func TestWhatMachinesKeep(t *testing.T) {
	for spec, want := range map[string][2]bool{
		"{}": {},
		"{firmware: {bootloader: {bios: {}}}, devices: {tpm: {}}}":                                               {},
		"{firmware: {bootloader: {efi: {persistent: false}}}, devices: {tpm: {persistent: false}}}":              {},
		"{firmware: {bootloader: {efi: {persistent: true}}}}":                                                    {true, false},
		"{devices: {tpm: {persistent: true}}}":                                                                   {false, true},
		"{devices: {tpm: {enabled: false, persistent: true}}}":                                                   {},
		"{firmware: {bootloader: {efi: {persistent: true}}}, devices: {tpm: {enabled: true, persistent: true}}}": {true, true},
	} {
		d := &v1.DomainSpec{}
		if err := yaml.UnmarshalStrict([]byte(spec), d); err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{KeepsVariables(d), KeepsTPM(d)}; got != want || KeepsState(d) != (want[0] || want[1]) {
			t.Errorf("%s: variables and TPM are kept: %v, want %v", spec, got, want)
		}
	}
}
