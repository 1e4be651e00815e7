package podspec_test

import (
	"errors"
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/podspec"
)

func TestDevicesThatNoPodCanHaveAreNamed(t *testing.T) {
	const at = "spec.domain.devices."
	for devices, want := range map[string]string{
		"{gpus: [{name: a, deviceName: vendor.example/card}, {name: b, deviceName: vendor.example/other}]}": at + "gpus[1].deviceName",
		"{gpus: [{name: a, claimName: c}]}":                          at + "gpus[0].claimName",
		"{hostDevices: [{name: a, deviceName: cpu}]}":                at + "hostDevices[0].deviceName",
		"{hostDevices: [{name: a}]}":                                 at + "hostDevices[0].deviceName",
		"{tpm: {persistent: true}}":                                  "",
		"{filesystems: [{name: nowhere, virtiofs: {}}]}":             at + "filesystems[0].name",
		"{filesystems: [{name: empty, virtiofs: {}}]}":               at + "filesystems[0].name",
		"{filesystems: [{name: raw, virtiofs: {}}]}":                 at + "filesystems[0].name",
		"{disks: [{name: data, lun: {}}]}":                           at + "disks[0].lun",
		"{disks: [{name: empty, lun: {}}]}":                          at + "disks[0].lun",
		"{disks: [{name: raw, lun: {}}]}":                            "",
		"{tpm: {enabled: false, persistent: true}}":                  "",
		"{filesystems: [{name: data, virtiofs: {}}]}":                "",
		"{hostDevices: [{name: a, deviceName: vendor.example/key}]}": "",
	} {
		vmi := &v1.VirtualMachineInstance{}
		vmi.Name = "web"
		if err := yaml.UnmarshalStrict([]byte(devices), &vmi.Spec.Domain.Devices); err != nil {
			t.Fatal(err)
		}
		volumes := "[{name: empty, emptyDisk: {capacity: 1Gi}}, {name: raw, persistentVolumeClaim: {claimName: raw}}, {name: data, persistentVolumeClaim: {claimName: data}}]"
		if err := yaml.UnmarshalStrict([]byte(volumes), &vmi.Spec.Volumes); err != nil {
			t.Fatal(err)
		}
		_, err := podspec.Render(vmi, emulated(), image, claims)
		var unsupported *podspec.UnsupportedError
		if errors.As(err, &unsupported) != (want != "") || want != "" && unsupported.Field != want {
			t.Errorf("%s: got %v, want field %q", devices, err, want)
		}
	}
}
