// Package network prepares a launcher Pod's network namespace for its guest. It is the one package that enters another
// network namespace, and it does so only after proof that it is the Pod's: rules made in the node's own would cut the
// node off.
package network

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/names"
)

// ErrUnsupported is returned for an interface that this version can't connect.
var ErrUnsupported = errors.New("not supported")

// Uplink is the interface by which a Pod reaches its network.
const Uplink = "eth0"

// defaultCIDR is the guest's network behind masquerade where the VMI names none; the guest always sees the same
// addresses, also after it has moved to another Pod.
const defaultCIDR = "10.0.2.0/24"

// Port is how one interface of the guest is connected to the Pod's network.
type Port struct {
	// Interface is the name of the VMI's interface.
	Interface string
	// Bridge and Tap are devices in the Pod's network namespace, at most 15 bytes each.
	Bridge, Tap string
	// MAC is the guest's.
	MAC string
	// Gateway is the bridge's address and Guest the guest's, in the same network.
	Gateway, Guest netip.Prefix
	// Forward lists what is passed on to the guest; empty: everything that reaches the Pod.
	Forward []Forward
	// Hostname is what the guest is told to call itself.
	Hostname string
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
		switch {
		case !ok || network.Pod == nil:
			return nil, fmt.Errorf("%s: interface %q is not on the Pod's network: %w", field, iface.Name, ErrUnsupported)
		case iface.Masquerade == nil:
			return nil, fmt.Errorf("%s: interface %q has no masquerade binding: %w", field, iface.Name, ErrUnsupported)
		}
		port, err := masquerade(iface, network.Pod.VMNetworkCIDR)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		if port.MAC == "" {
			port.MAC = defaults.MAC(vmi.Namespace, vmi.Name, iface.Name)
		}
		port.Hostname = names.Hostname(vmi)
		ports = append(ports, port)
	}
	return ports, nil
}

func masquerade(iface v1.Interface, cidr string) (Port, error) {
	if cidr == "" {
		cidr = defaultCIDR
	}
	network, err := netip.ParsePrefix(cidr)
	if err != nil || !network.Addr().Is4() || network.Bits() > 30 {
		return Port{}, fmt.Errorf("vmNetworkCIDR %q: must be an IPv4 network with room for two addresses, such as %s", cidr, defaultCIDR)
	}
	network = network.Masked()
	gateway := network.Addr().Next()
	p := Port{
		Interface: iface.Name,
		Bridge:    device("k6t-", iface.Name),
		Tap:       device("tap-", iface.Name),
		MAC:       strings.ToLower(strings.ReplaceAll(iface.MacAddress, "-", ":")),
		Gateway:   netip.PrefixFrom(gateway, network.Bits()),
		Guest:     netip.PrefixFrom(gateway.Next(), network.Bits()),
	}
	for _, port := range iface.Ports {
		if port.Port < 1 || port.Port > 65535 {
			return Port{}, fmt.Errorf("ports: %d: must be from 1 to 65535", port.Port)
		}
		p.Forward = append(p.Forward, Forward{UDP: strings.EqualFold(port.Protocol, "UDP"), Port: uint16(port.Port)})
	}
	return p, nil
}

var plain = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,10}$`)

// device names a network device after an interface: as it is where it fits the kernel's 15 bytes, else hashed.
func device(prefix, name string) string {
	if plain.MatchString(name) {
		return prefix + name
	}
	sum := sha256.Sum256([]byte(name))
	return prefix + hex.EncodeToString(sum[:])[:11]
}

// guest returns the port as the launcher is told of it. DNS servers are left out: the launcher hands out its own.
func (p Port) guest(mtu uint32) *guestv1.Interface {
	return &guestv1.Interface{
		Name: p.Interface, Tap: p.Tap, Mac: p.MAC, Mtu: mtu,
		Lease: &guestv1.Lease{Bridge: p.Bridge, Address: p.Guest.String(), Gateway: p.Gateway.Addr().String(), Hostname: p.Hostname},
	}
}
