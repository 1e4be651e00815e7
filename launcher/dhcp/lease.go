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
	// MAC of the guest's interface; requests of others are not answered, except where AnyClient is set.
	MAC       net.HardwareAddr
	AnyClient bool
	// Address of the guest with its prefix.
	Address netip.Prefix
	// Gateway is the default router; the zero Addr: there is none.
	Gateway netip.Addr
	// Server is the address of the server itself.
	Server netip.Addr
	Routes []Route
	DNS    []netip.Addr
	// Search are the domains in which names are looked for; the first is the guest's own.
	Search []string
	// Hostname is left out where it is empty.
	Hostname string
	// MTU in bytes; 0 is left out.
	MTU     uint16
	Options Options
}

// Route leads to a network by a gateway; the zero Addr: it is on the link.
type Route struct {
	Destination netip.Prefix
	Gateway     netip.Addr
}

// From reads the lease that the node agent gave for an interface. Name servers and search domains that it left out are
// those of the Pod's resolv.conf(5), which may be empty. Errors name what is no IPv4 address or no MAC address, or a
// search list of more than 255 bytes.
func From(i *guestv1.Interface, resolvConf []byte) (Lease, error) {
	given := i.GetLease()
	l := Lease{Hostname: given.GetHostname(), MTU: uint16(min(i.GetMtu(), math.MaxUint16)), AnyClient: given.GetAnyClient()}
	var err error
	if l.MAC, err = net.ParseMAC(i.GetMac()); err != nil || len(l.MAC) != 6 {
		return Lease{}, fmt.Errorf("reading its MAC address: %q is not of six bytes", i.GetMac())
	}
	if l.Address, err = prefix4(given.GetAddress()); err != nil {
		return Lease{}, fmt.Errorf("reading its address: %w", err)
	}
	if err := l.readRouting(given); err != nil {
		return Lease{}, err
	}
	if err := l.readNaming(given, resolvConf); err != nil {
		return Lease{}, err
	}
	if l.Options, err = optionsOf(given.GetOptions()); err != nil {
		return Lease{}, err
	}
	return l, nil
}

func (l *Lease) readRouting(given *guestv1.Lease) (err error) {
	if given.GetGateway() != "" || given.GetServer() == "" {
		if l.Gateway, err = address4(given.GetGateway()); err != nil {
			return fmt.Errorf("reading its gateway: %w", err)
		}
	}
	l.Server = l.Gateway
	if given.GetServer() != "" {
		if l.Server, err = address4(given.GetServer()); err != nil {
			return fmt.Errorf("reading the server's address: %w", err)
		}
	}
	for _, r := range given.GetRoutes() {
		var route Route
		if route.Destination, err = prefix4(r.GetDestination()); err != nil {
			return fmt.Errorf("reading its routes: %w", err)
		}
		if r.GetGateway() != "" {
			if route.Gateway, err = address4(r.GetGateway()); err != nil {
				return fmt.Errorf("reading its routes: %w", err)
			}
		}
		l.Routes = append(l.Routes, route)
	}
	return nil
}

func (l *Lease) readNaming(given *guestv1.Lease, resolvConf []byte) error {
	for _, s := range given.GetDnsServers() {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return fmt.Errorf("reading its name servers: %q is no address", s)
		}
		l.DNS = append(l.DNS, a)
	}
	servers, search := Resolver(resolvConf)
	if len(l.DNS) == 0 {
		l.DNS = servers
	}
	l.Search = given.GetDnsSearch()
	if len(l.Search) == 0 {
		l.Search = search
	}
	if own := given.GetSubdomain(); own != "" && len(l.Search) > 0 {
		l.Search = append([]string{own + "." + l.Search[0]}, l.Search...)
	}
	size := 0
	for _, s := range l.Search {
		size += len(s) + 2 // a length before each label but the last dot's, and the end
	}
	if size > maxSearch {
		return fmt.Errorf("reading its search domains: they are of %d bytes, at most %d: shorten spec.dnsConfig.searches", size, maxSearch)
	}
	return nil
}

func optionsOf(given *guestv1.DhcpOptions) (Options, error) {
	o := Options{BootFile: given.GetBootFileName(), TFTPServer: given.GetTftpServerName()}
	for _, s := range given.GetNtpServers() {
		a, err := address4(s)
		if err != nil {
			return Options{}, fmt.Errorf("reading its NTP servers: %w", err)
		}
		o.NTP = append(o.NTP, a)
	}
	for code, value := range given.GetPrivateOptions() {
		if code < 224 || code > 254 {
			return Options{}, fmt.Errorf("reading its private options: %d is not from 224 to 254", code)
		}
		if o.Private == nil {
			o.Private = map[uint8]string{}
		}
		o.Private[uint8(code)] = value
	}
	return o, nil
}

func address4(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return netip.Addr{}, fmt.Errorf("%q is no IPv4 address", s)
	}
	return a, nil
}

func prefix4(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil || !p.Addr().Is4() {
		return netip.Prefix{}, fmt.Errorf("%q is no IPv4 address with a prefix", s)
	}
	return p, nil
}
