package acpi_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/acpi"
)

// mount publishes a key as the kubelet does.
func mount(t *testing.T, dir, volume, key, content string) {
	t.Helper()
	base := filepath.Join(dir, volume)
	err1 := os.MkdirAll(filepath.Join(base, "..one"), 0o755)
	err2 := os.WriteFile(filepath.Join(base, "..one", key), []byte(content), 0o644)
	err3 := os.Symlink("..one", filepath.Join(base, "..data"))
	err4 := os.Symlink(filepath.Join("..data", key), filepath.Join(base, key))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
}

func TestTables(t *testing.T) {
	dir := t.TempDir()
	mount(t, dir, "windows", "slic.bin", "SLIC"+strings.Repeat("x", 370))
	mount(t, dir, "oem", "msdm.bin", "MSDM"+strings.Repeat("x", 81))
	mount(t, dir, "short", "slic.bin", "SLIC")
	mount(t, dir, "other", "slic.bin", "DSDT"+strings.Repeat("x", 81))
	mount(t, dir, "../outside", "slic.bin", "SLIC"+strings.Repeat("x", 370))
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	const volumes = "volumes: [{name: windows, secret: {secretName: w}}, {name: oem, secret: {secretName: o}}, {name: short, secret: {secretName: s}}, " +
		"{name: other, secret: {secretName: x}}, {name: empty, secret: {secretName: e}}, {name: disk, emptyDisk: {capacity: 1Gi}}]"
	for spec, tc := range map[string]struct {
		tables map[string]string
		err    field.ErrorType
		path   string
	}{
		"{}": {},
		"{slicNameRef: windows, msdmNameRef: oem}": {tables: map[string]string{"slic": dir + "/windows/slic.bin", "msdm": dir + "/oem/msdm.bin"}},
		"{slicNameRef: empty}":                     {err: field.ErrorTypeNotFound, path: "slicNameRef"},
		"{msdmNameRef: windows}":                   {err: field.ErrorTypeNotFound, path: "msdmNameRef"},
		"{slicNameRef: short}":                     {err: field.ErrorTypeInvalid, path: "slicNameRef"},
		"{slicNameRef: other}":                     {err: field.ErrorTypeInvalid, path: "slicNameRef"},
		"{slicNameRef: disk}":                      {err: field.ErrorTypeInvalid, path: "slicNameRef"},
		"{slicNameRef: ../outside}":                {err: field.ErrorTypeInvalid, path: "slicNameRef"},
	} {
		vmi := &v1.VirtualMachineInstance{}
		if err := yaml.UnmarshalStrict([]byte("{domain: {devices: {}, firmware: {acpi: "+spec+"}}, "+volumes+"}"), &vmi.Spec); err != nil {
			t.Fatal(err)
		}
		got, err := acpi.Tables(vmi, dir)
		var wrong *field.Error
		switch {
		case tc.err == "" && (err != nil || !maps.Equal(got, tc.tables)):
			t.Errorf("%s: got %v, %v; want %v", spec, got, err, tc.tables)
		case tc.err != "" && (!errors.As(err, &wrong) || wrong.Type != tc.err || wrong.Field != "spec.domain.firmware.acpi."+tc.path):
			t.Errorf("%s: got %v, want %s at %s", spec, err, tc.err, tc.path)
		}
	}
}
