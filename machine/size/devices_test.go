package size_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/size"
)

func TestWhatDevicesAskFor(t *testing.T) {
	emulated := config.From(nil)
	emulated.UseEmulation = true
	for devices, tc := range map[string]struct {
		memory string
		limits map[k8sv1.ResourceName]string
	}{
		"{}":                      {"244Mi", map[k8sv1.ResourceName]string{}},
		"{tpm: {enabled: false}}": {"244Mi", map[k8sv1.ResourceName]string{}},
		"{tpm: {}}":               {"252Mi", map[k8sv1.ResourceName]string{}},
		"{filesystems: [{name: a, virtiofs: {}}, {name: b, virtiofs: {}}]}": {"260Mi", map[k8sv1.ResourceName]string{}},
		"{autoattachVSOCK: true}": {"244Mi", map[k8sv1.ResourceName]string{"devices.kubevirt.io/vhost-vsock": "1"}},
		"{gpus: [{name: a, deviceName: x.y/gpu}, {name: b, deviceName: x.y/gpu}], hostDevices: [{name: c, deviceName: x.y/key}, {name: d, claimName: z}]}": {
			"1268Mi", map[k8sv1.ResourceName]string{"x.y/gpu": "2", "x.y/key": "1"},
		},
	} {
		guest := vmi(func(v *v1.VirtualMachineInstance) {
			v.Spec.Domain.Devices.Interfaces = nil
			if err := yaml.UnmarshalStrict([]byte(devices), &v.Spec.Domain.Devices); err != nil {
				t.Fatal(err)
			}
		})
		got := size.Pod(guest, emulated)
		requests := amounts(got.Requests)
		if requests["memory"] != tc.memory {
			t.Errorf("%s: asks for %s of memory, want %s", devices, requests["memory"], tc.memory)
		}
		delete(requests, "memory")
		delete(requests, "cpu")
		if diff := cmp.Diff(tc.limits, requests) + cmp.Diff(tc.limits, amounts(got.Limits)); diff != "" {
			t.Errorf("%s: devices (-want +got):\n%s", devices, diff)
		}
	}
}
