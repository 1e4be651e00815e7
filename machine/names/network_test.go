package names_test

import (
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
)

func TestDevicesOfANetwork(t *testing.T) {
	pod := v1.NetworkSource{Pod: &v1.PodNetwork{}}
	multus := func(isDefault bool) v1.NetworkSource {
		return v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: "x", Default: isDefault}}
	}
	for name, tc := range map[string]struct {
		network v1.Network
		nic     string
		want    names.Wiring
	}{
		"the Pod's":          {v1.Network{Name: "default", NetworkSource: pod}, "eth0", names.Wiring{Bridge: "k6t-eth0", Tap: "tap0", Original: "eth0-nic", Stand: "eth0-ip"}},
		"another as default": {v1.Network{Name: "other", NetworkSource: multus(true)}, "eth0", names.Wiring{Bridge: "k6t-eth0", Tap: "tap0", Original: "eth0-nic", Stand: "eth0-ip"}},
		"secondary": {v1.Network{Name: "red", NetworkSource: multus(false)}, "podb1f51a511f1",
			names.Wiring{Bridge: "k6t-b1f51a511f1", Tap: "tapb1f51a511f1", Original: "b1f51a511f1-nic", Stand: "b1f51a511f1-ip"}},
	} {
		nic := names.PodInterface(tc.network)
		got := names.WiringOf(nic)
		if nic != tc.nic || got != tc.want {
			t.Errorf("%s: got %s, %+v; want %s, %+v", name, nic, got, tc.nic, tc.want)
		}
		for _, device := range []string{nic, got.Bridge, got.Tap, got.Original, got.Stand} {
			if len(device) > 15 {
				t.Errorf("%s: %q is longer than the kernel takes", name, device)
			}
		}
	}
}
