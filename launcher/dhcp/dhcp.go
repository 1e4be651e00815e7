// Package dhcp hands one guest its address: a DHCPv4 server that knows one lease and serves one bridge. It needs no
// capability where the Pod's ports below 1024 are open to all (net.ipv4.ip_unprivileged_port_start=0).
package dhcp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
)

// leaseTime is infinite: the address is the guest's for as long as it runs, and after a migration as well.
const leaseTime = math.MaxUint32

// Server hands out one lease on one bridge.
type Server struct {
	bridge string
	server *server4.Server
}

// Listen opens the DHCP port of the bridge. Errors: the bridge is not there, the port can't be had.
func Listen(bridge string, l Lease) (*Server, error) {
	server, err := server4.NewServer(bridge, &net.UDPAddr{IP: net.IPv4zero, Port: dhcpv4.ServerPort}, l.handle)
	if err != nil {
		return nil, fmt.Errorf("opening the DHCP port of %s: %w", bridge, err)
	}
	return &Server{bridge, server}, nil
}

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.server.Close() })
	defer stop()
	if err := s.server.Serve(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving DHCP on %s: %w", s.bridge, err)
	}
	return nil
}

// handle answers one request. Replies are broadcast: a guest without an address can't be asked for by ARP.
func (l Lease) handle(conn net.PacketConn, _ net.Addr, request *dhcpv4.DHCPv4) {
	reply, err := l.Reply(request)
	if err != nil {
		return // not for us, or nonsense: a DHCP server keeps silent
	}
	_, _ = conn.WriteTo(reply.ToBytes(), &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ClientPort})
}

var (
	errNotOurs = errors.New("not the guest's")
	errIgnored = errors.New("needs no answer")
)

// Reply is the answer to a request: an offer, an acknowledgement, or a refusal of any address but the lease's. An
// error means no answer.
func (l Lease) Reply(request *dhcpv4.DHCPv4) (*dhcpv4.DHCPv4, error) {
	if request.OpCode != dhcpv4.OpcodeBootRequest || !l.AnyClient && request.ClientHWAddr.String() != l.MAC.String() {
		return nil, errNotOurs
	}
	kind := dhcpv4.MessageTypeAck
	switch request.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		kind = dhcpv4.MessageTypeOffer
	case dhcpv4.MessageTypeRequest:
		if !l.accepts(request) {
			kind = dhcpv4.MessageTypeNak
		}
	case dhcpv4.MessageTypeInform:
	default:
		return nil, errIgnored
	}
	server := dhcpv4.OptServerIdentifier(l.Server.AsSlice())
	if kind == dhcpv4.MessageTypeNak {
		return dhcpv4.NewReplyFromRequest(request, dhcpv4.WithMessageType(kind), dhcpv4.WithOption(server))
	}
	return dhcpv4.NewReplyFromRequest(request, append(l.modifiers(kind), dhcpv4.WithOption(server))...)
}

// accepts tells whether a request asks for our address, at our server if it names one.
func (l Lease) accepts(request *dhcpv4.DHCPv4) bool {
	if id := request.ServerIdentifier(); id != nil && !id.Equal(l.Server.AsSlice()) {
		return false
	}
	asked := request.RequestedIPAddress()
	if asked == nil {
		asked = request.ClientIPAddr
	}
	return asked.Equal(l.Address.Addr().AsSlice())
}
