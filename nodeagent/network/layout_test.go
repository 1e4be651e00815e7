package network

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

func vmi(iface v1.Interface, pod *v1.PodNetwork) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{}
	vmi.Name = "web.example"
	vmi.Spec.Domain.Devices.Interfaces = []v1.Interface{iface}
	vmi.Spec.Networks = []v1.Network{{Name: iface.Name, NetworkSource: v1.NetworkSource{Pod: pod}}}
	return vmi
}

func masqueraded(name string, ports ...v1.Port) v1.Interface {
	return v1.Interface{
		Name: name, MacAddress: "02-AB-00-00-00-01", Ports: ports,
		InterfaceBindingMethod: v1.InterfaceBindingMethod{Masquerade: &v1.InterfaceMasquerade{}},
	}
}

func TestTheLauncherIsToldWhatWasPrepared(t *testing.T) {
	for name, tc := range map[string]struct {
		vmi  *v1.VirtualMachineInstance
		want *guestv1.Interface
	}{
		"default network": {vmi(masqueraded("default"), &v1.PodNetwork{}), &guestv1.Interface{
			Name: "default", Tap: "tap-default", Mac: "02:ab:00:00:00:01", Mtu: 1450,
			Lease: &guestv1.Lease{Bridge: "k6t-default", Address: "10.0.2.2/24", Gateway: "10.0.2.1", Hostname: "web"},
		}},
		"own network, long name": {vmi(masqueraded("a-rather-long-name"), &v1.PodNetwork{VMNetworkCIDR: "192.168.66.77/28"}), &guestv1.Interface{
			Name: "a-rather-long-name", Tap: "tap-87d02c795d0", Mac: "02:ab:00:00:00:01", Mtu: 1450,
			Lease: &guestv1.Lease{Bridge: "k6t-87d02c795d0", Address: "192.168.66.66/28", Gateway: "192.168.66.65", Hostname: "web"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ports, err := Layout(tc.vmi)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, ports[0].guest(1450), protocmp.Transform()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDeviceNamesFitTheKernel(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"default", "eleven-char", "twelve-chars", "UPPER", "a/b", "..", "-x", strings.Repeat("x", 63)} {
		d := device("k6t-", name)
		if len(d) > 15 || strings.ContainsAny(d, "/ ") || seen[d] != "" {
			t.Errorf("%q: got %q, also of %q", name, d, seen[d])
		}
		seen[d] = name
	}
}

func TestWhatCannotBeConnectedIsNamed(t *testing.T) {
	bridged := v1.Interface{Name: "default", InterfaceBindingMethod: v1.InterfaceBindingMethod{Bridge: &v1.InterfaceBridge{}}}
	for name, tc := range map[string]struct {
		vmi         *v1.VirtualMachineInstance
		text        string
		unsupported bool
	}{
		"bridge":        {vmi(bridged, &v1.PodNetwork{}), "spec.domain.devices.interfaces[0]", true},
		"not the Pod's": {vmi(masqueraded("default"), nil), `"default" is not on the Pod's network`, true},
		"IPv6":          {vmi(masqueraded("default"), &v1.PodNetwork{VMNetworkCIDR: "fd10::/120"}), `vmNetworkCIDR "fd10::/120"`, false},
		"no room":       {vmi(masqueraded("default"), &v1.PodNetwork{VMNetworkCIDR: "10.0.0.0/31"}), "room for two", false},
		"no network":    {vmi(masqueraded("default"), &v1.PodNetwork{VMNetworkCIDR: "nonsense"}), "nonsense", false},
		"a wrong port":  {vmi(masqueraded("default", v1.Port{Port: 70000}), &v1.PodNetwork{}), "70000", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Layout(tc.vmi)
			if err == nil || !strings.Contains(err.Error(), tc.text) || errors.Is(err, ErrUnsupported) != tc.unsupported {
				t.Errorf("got %v", err)
			}
		})
	}
}
