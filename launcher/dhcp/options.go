package dhcp

import (
	"maps"
	"net"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/rfc1035label"
)

// maxSearch bounds the search list, in bytes as it is sent: it is one option.
const maxSearch = 255

// modifiers make a reply carry the lease.
func (l Lease) modifiers(kind dhcpv4.MessageType) []dhcpv4.Modifier {
	m := []dhcpv4.Modifier{
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithYourIP(l.Address.Addr().AsSlice()),
		dhcpv4.WithServerIP(l.Server.AsSlice()),
		dhcpv4.WithNetmask(net.CIDRMask(l.Address.Bits(), 32)),
		dhcpv4.WithLeaseTime(leaseTime),
	}
	if l.Gateway.IsValid() {
		m = append(m, dhcpv4.WithRouter(l.Gateway.AsSlice()))
	}
	if routes := l.routes(); len(routes) > 0 {
		m = append(m, dhcpv4.WithOption(dhcpv4.OptClasslessStaticRoute(routes...)))
	}
	m = append(m, l.naming()...)
	if l.MTU > 0 {
		m = append(m, dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{byte(l.MTU >> 8), byte(l.MTU)})))
	}
	return append(m, l.Options.modifiers()...)
}

// routes are the lease's and then the default one: a client that is told of any takes no other router.
func (l Lease) routes() []*dhcpv4.Route {
	if len(l.Routes) == 0 {
		return nil
	}
	var out []*dhcpv4.Route
	for _, r := range l.Routes {
		router := net.IPv4zero // on the link
		if r.Gateway.IsValid() {
			router = r.Gateway.AsSlice()
		}
		out = append(out, &dhcpv4.Route{Dest: network(r.Destination), Router: router.To4()})
	}
	if l.Gateway.IsValid() {
		out = append(out, &dhcpv4.Route{Dest: network(netip.PrefixFrom(netip.IPv4Unspecified(), 0)), Router: l.Gateway.AsSlice()})
	}
	return out
}

func network(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Masked().Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
}

// naming are the options of DNS and of the guest's own name.
func (l Lease) naming() []dhcpv4.Modifier {
	var m []dhcpv4.Modifier
	var servers []net.IP
	for _, a := range l.DNS {
		if a.Is4() {
			servers = append(servers, a.AsSlice())
		}
	}
	if len(servers) > 0 {
		m = append(m, dhcpv4.WithDNS(servers...))
	}
	if len(l.Search) > 0 {
		m = append(m,
			dhcpv4.WithOption(dhcpv4.OptDomainName(l.Search[0])),
			dhcpv4.WithOption(dhcpv4.OptDomainSearch(&rfc1035label.Labels{Labels: l.Search})))
	}
	if l.Hostname != "" {
		m = append(m, dhcpv4.WithOption(dhcpv4.OptHostName(l.Hostname)))
	}
	return m
}

// Options are those that the VMI's owner asks for; empty ones are left out.
type Options struct {
	BootFile, TFTPServer string
	NTP                  []netip.Addr
	// Private are site-specific ones by number, 224 to 254.
	Private map[uint8]string
}

func (o Options) modifiers() []dhcpv4.Modifier {
	var m []dhcpv4.Modifier
	if o.TFTPServer != "" {
		m = append(m, dhcpv4.WithOption(dhcpv4.OptTFTPServerName(o.TFTPServer)))
	}
	if o.BootFile != "" {
		m = append(m, dhcpv4.WithOption(dhcpv4.OptBootFileName(o.BootFile)))
	}
	if len(o.NTP) > 0 {
		var servers []net.IP
		for _, a := range o.NTP {
			servers = append(servers, a.AsSlice())
		}
		m = append(m, dhcpv4.WithOption(dhcpv4.OptNTPServers(servers...)))
	}
	for _, code := range slices.Sorted(maps.Keys(o.Private)) {
		m = append(m, dhcpv4.WithOption(dhcpv4.OptGeneric(dhcpv4.GenericOptionCode(code), []byte(o.Private[code]))))
	}
	return m
}
