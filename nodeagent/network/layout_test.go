package network

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/subnet"
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

var eth0 = names.Wiring{Bridge: "k6t-eth0", Tap: "tap0", Original: "eth0-nic", Stand: "eth0-ip"}

func subnets(gateway, guest, gateway6, guest6 string) *Masquerade {
	return &Masquerade{
		V4: subnet.Subnet{Gateway: netip.MustParsePrefix(gateway), Guest: netip.MustParsePrefix(guest)},
		V6: subnet.Subnet{Gateway: netip.MustParsePrefix(gateway6), Guest: netip.MustParsePrefix(guest6)},
	}
}

func TestPorts(t *testing.T) {
	usual := subnets("10.0.2.1/24", "10.0.2.2/24", "fd10:0:2::1/120", "fd10:0:2::2/120")
	multi := func(model string) *v1.VirtualMachineInstance {
		iface := masqueraded("default")
		iface.Model = model
		m := vmi(iface, &v1.PodNetwork{})
		m.Spec.Domain.Devices.NetworkInterfaceMultiQueue = new(true)
		m.Spec.Domain.CPU = &v1.CPU{Cores: 4}
		return m
	}
	secondary := vmi(v1.Interface{Name: "red", InterfaceBindingMethod: v1.InterfaceBindingMethod{Bridge: &v1.InterfaceBridge{}}}, nil)
	secondary.Spec.Networks[0].Multus = &v1.MultusNetwork{NetworkName: "red-net"}
	for name, tc := range map[string]struct {
		vmi  *v1.VirtualMachineInstance
		want Port
	}{
		"default network": {vmi(masqueraded("default"), &v1.PodNetwork{}), Port{
			Interface: "default", Uplink: "eth0", Wiring: eth0, MAC: "02:ab:00:00:00:01", Queues: 1, Masquerade: usual, Hostname: "web",
		}},
		"own networks": {vmi(masqueraded("a-rather-long-name"), &v1.PodNetwork{VMNetworkCIDR: "192.168.66.77/28", VMIPv6NetworkCIDR: "fd00:1::/64"}), Port{
			Interface: "a-rather-long-name", Uplink: "eth0", Wiring: eth0, MAC: "02:ab:00:00:00:01", Queues: 1, Hostname: "web",
			Masquerade: subnets("192.168.66.65/28", "192.168.66.66/28", "fd00:1::1/64", "fd00:1::2/64"),
		}},
		"a queue for each vCPU": {multi(""), Port{
			Interface: "default", Uplink: "eth0", Wiring: eth0, MAC: "02:ab:00:00:00:01", Queues: 4, Masquerade: usual, Hostname: "web",
		}},
		"a model without queues": {multi("e1000"), Port{
			Interface: "default", Uplink: "eth0", Wiring: eth0, MAC: "02:ab:00:00:00:01", Queues: 1, Masquerade: usual, Hostname: "web",
		}},
		"secondary, bridged": {secondary, Port{
			Interface: "red", Uplink: "podb1f51a511f1", Queues: 1, Hostname: "web",
			Wiring: names.Wiring{Bridge: "k6t-b1f51a511f1", Tap: "tapb1f51a511f1", Original: "b1f51a511f1-nic", Stand: "b1f51a511f1-ip"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ports, err := Layout(tc.vmi)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]Port{tc.want}, ports, cmpopts.EquateComparable(netip.Prefix{})); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTheLauncherIsToldWhatWasPrepared(t *testing.T) {
	iface := masqueraded("default")
	iface.DHCPOptions = &v1.DHCPOptions{BootFileName: "pxe.0", TFTPServerName: "tftp", NTPServers: []string{"10.1.1.1"}, PrivateOptions: []v1.DHCPPrivateOptions{{Option: 240, Value: "x"}}}
	ports, err := Layout(vmi(iface, &v1.PodNetwork{}))
	if err != nil {
		t.Fatal(err)
	}
	want := &guestv1.Interface{
		Name: "default", Tap: "tap0", Mac: "02:ab:00:00:00:01", Mtu: 1450, Queues: 1,
		Lease: &guestv1.Lease{Bridge: "k6t-eth0", Address: "10.0.2.2/24", Gateway: "10.0.2.1", Hostname: "web", AnyClient: true, Options: &guestv1.DhcpOptions{
			BootFileName: "pxe.0", TftpServerName: "tftp", NtpServers: []string{"10.1.1.1"}, PrivateOptions: map[uint32]string{240: "x"},
		}},
		Lease6: &guestv1.Lease6{Bridge: "k6t-eth0", Address: "fd10:0:2::2", ServerMac: "02:00:00:00:00:00"},
	}
	if d := cmp.Diff(want, ports[0].hidden(families{v4: true, v6: true}, 1450), protocmp.Transform()); d != "" {
		t.Error(d)
	}
}

func TestWhatCannotBeConnectedIsNamed(t *testing.T) {
	nothing := v1.Interface{Name: "default"}
	badMAC, badOption := masqueraded("default"), masqueraded("default")
	badMAC.MacAddress = "01:00:5e:00:53:0a"
	badOption.DHCPOptions = &v1.DHCPOptions{PrivateOptions: []v1.DHCPPrivateOptions{{Option: 3, Value: "x"}}}
	for name, tc := range map[string]struct {
		vmi         *v1.VirtualMachineInstance
		text        string
		unsupported bool
	}{
		"no binding":    {vmi(nothing, &v1.PodNetwork{}), "spec.domain.devices.interfaces[0]", true},
		"a group's MAC": {vmi(badMAC, &v1.PodNetwork{}), "01:00:5e:00:53:0a", false},
		"the router":    {vmi(badOption, &v1.PodNetwork{}), "option 3", false},
		"IPv4 as IPv6":  {vmi(masqueraded("default"), &v1.PodNetwork{VMIPv6NetworkCIDR: "10.1.0.0/24"}), `vmIPv6NetworkCIDR "10.1.0.0/24"`, false},
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
