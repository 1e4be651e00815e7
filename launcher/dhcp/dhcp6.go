package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/server6"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/insomniacslk/dhcp/rfc1035label"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// leaseTime6 is as good as infinite and can still be counted by clients that add to it.
const leaseTime6 = 999 * 24 * time.Hour

// Lease6 is what the guest gets of IPv6: one address. Routers are told of by router advertisements.
type Lease6 struct {
	Address netip.Addr
	// Server is the MAC address by which the server is known.
	Server net.HardwareAddr
	DNS    []netip.Addr
	Search []string
}

// From6 reads the IPv6 lease that the node agent gave for an interface; name servers and search domains are those of
// the Pod's resolv.conf(5). Errors name what is no IPv6 address or no MAC address.
func From6(i *guestv1.Interface, resolvConf []byte) (Lease6, error) {
	given := i.GetLease6()
	a, err := netip.ParseAddr(given.GetAddress())
	if err != nil || !a.Is6() || a.Is4In6() {
		return Lease6{}, fmt.Errorf("reading its address: %q is no IPv6 address", given.GetAddress())
	}
	server, err := net.ParseMAC(given.GetServerMac())
	if err != nil || len(server) != 6 {
		return Lease6{}, fmt.Errorf("reading the server's MAC address: %q is not of six bytes", given.GetServerMac())
	}
	l := Lease6{Address: a, Server: server}
	l.DNS, l.Search = Resolver(resolvConf)
	return l, nil
}

// Server6 hands out one lease on one bridge.
type Server6 struct {
	bridge string
	server *server6.Server
}

// Listen6 opens the DHCPv6 port of the bridge. Errors: the bridge is not there, the port can't be had.
func Listen6(bridge string, l Lease6) (*Server6, error) {
	all := &net.UDPAddr{IP: dhcpv6.AllDHCPRelayAgentsAndServers, Port: dhcpv6.DefaultServerPort}
	server, err := server6.NewServer(bridge, all, l.handle)
	if err != nil {
		return nil, fmt.Errorf("opening the DHCPv6 port of %s: %w", bridge, err)
	}
	return &Server6{bridge, server}, nil
}

// Serve answers until ctx ends.
func (s *Server6) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.server.Close() })
	defer stop()
	if err := s.server.Serve(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving DHCPv6 on %s: %w", s.bridge, err)
	}
	return nil
}

func (l Lease6) handle(conn net.PacketConn, peer net.Addr, request dhcpv6.DHCPv6) {
	reply, err := l.Reply(request)
	if err != nil {
		return
	}
	_, _ = conn.WriteTo(reply.ToBytes(), peer)
}

// Reply is the answer to a request: an advertisement for a solicitation without rapid commit, else a reply that always
// carries the one address. An error means no answer.
func (l Lease6) Reply(request dhcpv6.DHCPv6) (*dhcpv6.Message, error) {
	m, ok := request.(*dhcpv6.Message)
	if !ok {
		return nil, errors.New("relayed: there is no relay on this link")
	}
	us := dhcpv6.WithServerID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: l.Server})
	switch m.Type() {
	case dhcpv6.MessageTypeSolicit:
		if m.GetOneOption(dhcpv6.OptionRapidCommit) == nil {
			return dhcpv6.NewAdvertiseFromSolicit(m, append(l.modifiers(m), us)...)
		}
	case dhcpv6.MessageTypeRequest, dhcpv6.MessageTypeConfirm, dhcpv6.MessageTypeRenew, dhcpv6.MessageTypeRebind,
		dhcpv6.MessageTypeRelease, dhcpv6.MessageTypeDecline, dhcpv6.MessageTypeInformationRequest:
	default:
		return nil, errIgnored
	}
	return dhcpv6.NewReplyFromMessage(m, append(l.modifiers(m), us)...)
}

func (l Lease6) modifiers(m *dhcpv6.Message) []dhcpv6.Modifier {
	var out []dhcpv6.Modifier
	if asked := m.Options.OneIANA(); asked != nil {
		out = append(out, dhcpv6.WithIAID(asked.IaId), dhcpv6.WithIANA(dhcpv6.OptIAAddress{
			IPv6Addr: l.Address.AsSlice(), PreferredLifetime: leaseTime6, ValidLifetime: leaseTime6,
		}))
	}
	var servers []net.IP
	for _, a := range l.DNS {
		if a.Is6() {
			servers = append(servers, a.AsSlice())
		}
	}
	if len(servers) > 0 {
		out = append(out, dhcpv6.WithDNS(servers...))
	}
	if len(l.Search) > 0 {
		out = append(out, dhcpv6.WithOption(dhcpv6.OptDomainSearchList(&rfc1035label.Labels{Labels: l.Search})))
	}
	return out
}
