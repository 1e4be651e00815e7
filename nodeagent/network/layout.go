// Package network prepares a launcher Pod's network namespace for its guest. It is the one package that enters another
// network namespace, and it does so only after proof that it is the Pod's: rules made in the node's own would cut the
// node off. What it needs to know again later it reads from the namespace, so it may be killed between any two steps.
package network

import (
	"errors"
	"fmt"
	"strings"

	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/mac"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/size"
	"virtstack.io/virtstack/machine/subnet"
)

// ErrUnsupported is returned for an interface that this version can't connect.
var ErrUnsupported = errors.New("not supported")

// maxQueues bounds the queues of one tap device; source: the kernel's MAX_TAP_QUEUES.
const maxQueues = 256

// Port is how one interface of the guest is connected to the Pod's network.
type Port struct {
	// Interface is the name of the VMI's interface, Uplink that of the Pod's interface behind it.
	Interface, Uplink string
	names.Wiring
	// MAC is the guest's; empty: the guest takes over that of the uplink.
	MAC string
	// Queues of the tap device, 1 for a plain one.
	Queues int
	// Masquerade is nil for a guest that has the uplink's own address, by a bridge.
	Masquerade *Masquerade
	// Index is the interface's place among the VMI's.
	Index int
	// Hostname and Subdomain are what the guest is told to call itself; DHCP are options that the VMI asks for.
	Hostname, Subdomain string
	DHCP                *guestv1.DhcpOptions
}

// Masquerade is a network of the guest's own behind the Pod's address. A family is used where the Pod has an address
// of it.
type Masquerade struct {
	V4, V6 subnet.Subnet
	// Forward lists what is passed on to the guest; empty: everything that reaches the Pod.
	Forward []Forward
	// Mesh says that Istio's proxy is in the Pod: it gets what reaches the Pod, and passes it on.
	Mesh bool
}

// Forward is a port of the Pod that is passed on to the same port of the guest.
type Forward struct {
	UDP  bool
	Port uint16
}

// Layout returns the ports for a VMI's interfaces, in their order. It is a pure function of the VMI, so preparing again
// finds what was prepared. An error names the field.
func Layout(vmi *v1.VirtualMachineInstance) ([]Port, error) {
	networks := map[string]v1.Network{}
	for _, n := range vmi.Spec.Networks {
		networks[n.Name] = n
	}
	ports := make([]Port, 0, len(vmi.Spec.Domain.Devices.Interfaces))
	for i, iface := range vmi.Spec.Domain.Devices.Interfaces {
		if iface.State == v1.InterfaceStateAbsent {
			continue
		}
		field := fmt.Sprintf("spec.domain.devices.interfaces[%d]", i)
		network, ok := networks[iface.Name]
		if !ok {
			return nil, fmt.Errorf("%s: interface %q is on no network of spec.networks: %w", field, iface.Name, ErrUnsupported)
		}
		port, err := portOf(vmi, iface, network)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		port.Index = i
		ports = append(ports, port)
	}
	return ports, nil
}

func portOf(vmi *v1.VirtualMachineInstance, iface v1.Interface, network v1.Network) (Port, error) {
	uplink := names.PodInterface(network)
	p := Port{
		Interface: iface.Name, Uplink: uplink, Wiring: names.WiringOf(uplink), Queues: queues(vmi, iface),
		Hostname: names.Hostname(vmi), Subdomain: vmi.Spec.Subdomain,
	}
	var err error
	if iface.MacAddress != "" {
		if p.MAC, err = mac.Parse(iface.MacAddress); err != nil {
			return Port{}, fmt.Errorf("macAddress %q: %w", iface.MacAddress, err)
		}
	}
	if p.DHCP, err = options(iface.DHCPOptions); err != nil {
		return Port{}, err
	}
	switch {
	case iface.Masquerade != nil && network.Pod == nil:
		return Port{}, fmt.Errorf("interface %q is not on the Pod's network, which masquerade needs: %w", iface.Name, ErrUnsupported)
	case iface.Masquerade != nil:
		if p.Masquerade, err = masquerade(iface, network.Pod); err != nil {
			return Port{}, err
		}
		p.Masquerade.Mesh = vmi.Annotations[names.MeshInject] == "true"
		if p.MAC == "" {
			p.MAC = defaults.MAC(vmi.Namespace, vmi.Name, iface.Name)
		}
	case iface.Bridge == nil:
		return Port{}, fmt.Errorf("interface %q has neither masquerade nor bridge as its binding: %w", iface.Name, ErrUnsupported)
	}
	return p, err
}

// queues returns one for each vCPU where the VMI asks for that and the model knows of queues.
func queues(vmi *v1.VirtualMachineInstance, iface v1.Interface) int {
	multi := vmi.Spec.Domain.Devices.NetworkInterfaceMultiQueue
	if multi == nil || !*multi || iface.Model != "" && iface.Model != v1.VirtIO {
		return 1
	}
	return int(min(size.VCPUs(vmi), maxQueues))
}

func masquerade(iface v1.Interface, pod *v1.PodNetwork) (*Masquerade, error) {
	m := &Masquerade{}
	var err error
	if m.V4, err = subnet.IPv4(pod.VMNetworkCIDR); err != nil {
		return nil, fmt.Errorf("vmNetworkCIDR %q: %w", pod.VMNetworkCIDR, err)
	}
	if m.V6, err = subnet.IPv6(pod.VMIPv6NetworkCIDR); err != nil {
		return nil, fmt.Errorf("vmIPv6NetworkCIDR %q: %w", pod.VMIPv6NetworkCIDR, err)
	}
	for _, port := range iface.Ports {
		if port.Port < 1 || port.Port > 65535 {
			return nil, fmt.Errorf("ports: %d: must be from 1 to 65535", port.Port)
		}
		m.Forward = append(m.Forward, Forward{UDP: strings.EqualFold(port.Protocol, "UDP"), Port: uint16(port.Port)})
	}
	return m, nil
}

// options are the VMI's as the launcher is told of them; nil for none.
func options(o *v1.DHCPOptions) (*guestv1.DhcpOptions, error) {
	if o == nil {
		return nil, nil
	}
	out := &guestv1.DhcpOptions{BootFileName: o.BootFileName, TftpServerName: o.TFTPServerName, NtpServers: o.NTPServers}
	for _, p := range o.PrivateOptions {
		if p.Option < 224 || p.Option > 254 {
			return nil, fmt.Errorf("dhcpOptions.privateOptions: option %d: must be from 224 to 254", p.Option)
		}
		if out.PrivateOptions == nil {
			out.PrivateOptions = map[uint32]string{}
		}
		out.PrivateOptions[uint32(p.Option)] = p.Value
	}
	return out, nil
}
