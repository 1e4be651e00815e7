package dhcp

import (
	"fmt"
	"math"
	"net"
	"net/netip"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// Lease is what the guest gets.
type Lease struct {
	// MAC of the guest's interface; requests of others are not answered.
	MAC net.HardwareAddr
	// Address of the guest with its prefix.
	Address netip.Prefix
	// Gateway is the router and the server itself.
	Gateway netip.Addr
	DNS     []netip.Addr
	Search  []string
	// Hostname is left out where it is empty.
	Hostname string
	// MTU in bytes; 0 is left out.
	MTU uint16
}

// From reads the lease that the node agent gave for an interface. Name servers and search domains that it left out are
// those of the Pod's resolv.conf(5), which may be empty. Errors name what is no IPv4 address or no MAC address.
func From(i *guestv1.Interface, resolvConf []byte) (Lease, error) {
	given := i.GetLease()
	l := Lease{Hostname: given.GetHostname(), MTU: uint16(min(i.GetMtu(), math.MaxUint16)), Search: given.GetDnsSearch()}
	var err error
	if l.MAC, err = net.ParseMAC(i.GetMac()); err != nil || len(l.MAC) != 6 {
		return Lease{}, fmt.Errorf("reading its MAC address: %q is not of six bytes", i.GetMac())
	}
	if l.Address, err = netip.ParsePrefix(given.GetAddress()); err != nil || !l.Address.Addr().Is4() {
		return Lease{}, fmt.Errorf("reading its address: %q is no IPv4 address with a prefix", given.GetAddress())
	}
	if l.Gateway, err = netip.ParseAddr(given.GetGateway()); err != nil || !l.Gateway.Is4() {
		return Lease{}, fmt.Errorf("reading its gateway: %q is no IPv4 address", given.GetGateway())
	}
	for _, s := range given.GetDnsServers() {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return Lease{}, fmt.Errorf("reading its name servers: %q is no address", s)
		}
		l.DNS = append(l.DNS, a)
	}
	servers, search := Resolver(resolvConf)
	if len(l.DNS) == 0 {
		l.DNS = servers
	}
	if len(l.Search) == 0 {
		l.Search = search
	}
	return l, nil
}
