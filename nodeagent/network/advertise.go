package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv6"

	"virtstack.io/virtstack/machine/subnet"
)

// Times of router advertisements. A guest keeps its route for longer than a node agent is ever away.
const (
	advertiseEvery = 200 * time.Second
	// advertisePause bounds what a guest that asks without end gets: one answer in this time.
	advertisePause = 500 * time.Millisecond
	routerLifetime = 9000 * time.Second // the longest that RFC 4861 has
	prefixLifetime = 30 * 24 * time.Hour
)

var (
	// routerAddress is the bridge's on the guest's link, by which the guest knows its IPv6 router.
	routerAddress = netip.MustParsePrefix("fe80::1/64")
	allNodes      = net.ParseIP("ff02::1")
	allRouters    = net.ParseIP("ff02::2")
)

// Advertiser tells guests behind masquerade of their IPv6 router: a raw socket in the Pod's network namespace, which a
// launcher can't open. What a guest sends there is never looked at: it is a reason to advertise, no more.
type Advertiser struct {
	cancel context.CancelFunc
	links  []*link
}

// link is one bridge on which is advertised.
type link struct {
	bridge string
	index  int
	conn   *icmp.PacketConn
	text   []byte
}

// Advertise advertises on each port behind masquerade whose uplink has an IPv6 address, until Close. addresses are the
// Pod's, for the same proof as Prepare's. A Pod without IPv6 gives an Advertiser that does nothing.
func Advertise(ns *os.File, addresses []netip.Addr, ports []Port) (*Advertiser, error) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Advertiser{cancel: cancel}
	err := inside(ns, addresses, func(h *netlink.Handle) error {
		for _, p := range ports {
			if p.Masquerade == nil {
				continue
			}
			if err := a.add(h, p); err != nil {
				return fmt.Errorf("advertising a router on interface %q: %w", p.Interface, err)
			}
		}
		return nil
	})
	if err != nil {
		a.Close()
		return nil, err
	}
	for _, l := range a.links {
		go l.serve(ctx)
	}
	return a, nil
}

// Close ends it. The guest keeps the route it has.
func (a *Advertiser) Close() {
	a.cancel()
	for _, l := range a.links {
		_ = l.conn.Close()
	}
}

func (a *Advertiser) add(h *netlink.Handle, p Port) error {
	uplink, err := h.LinkByName(p.Uplink)
	if err != nil {
		return err
	}
	used, err := familiesOf(h, uplink)
	if err != nil || !used.v6 {
		return err
	}
	bridge, err := net.InterfaceByName(p.Bridge)
	if err != nil {
		return fmt.Errorf("looking for %s: %w", p.Bridge, err)
	}
	text, err := ndp.MarshalMessage(advertisement(p.Masquerade.V6, bridge))
	if err != nil {
		return err
	}
	conn, err := listen(bridge)
	if err != nil {
		return err
	}
	a.links = append(a.links, &link{p.Bridge, bridge.Index, conn, text})
	return nil
}

// advertisement says: I am your router, this prefix is on your link, and your address comes by DHCPv6.
func advertisement(s subnet.Subnet, bridge *net.Interface) *ndp.RouterAdvertisement {
	return &ndp.RouterAdvertisement{
		CurrentHopLimit: 64, ManagedConfiguration: true, OtherConfiguration: true, RouterLifetime: routerLifetime,
		Options: []ndp.Option{
			&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: bridge.HardwareAddr},
			ndp.NewMTU(uint32(bridge.MTU)),
			&ndp.PrefixInformation{
				PrefixLength: uint8(s.Gateway.Bits()), Prefix: s.Gateway.Masked().Addr(), OnLink: true,
				ValidLifetime: prefixLifetime, PreferredLifetime: prefixLifetime,
			},
		},
	}
}

// listen opens a raw socket that hears nothing but router solicitations on the bridge.
func listen(bridge *net.Interface) (*icmp.PacketConn, error) {
	conn, err := icmp.ListenPacket("ip6:ipv6-icmp", routerAddress.Addr().WithZone(bridge.Name).String())
	if err != nil {
		return nil, err
	}
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeRouterSolicitation)
	p := conn.IPv6PacketConn()
	err = errors.Join(
		p.SetICMPFilter(&only),
		p.JoinGroup(bridge, &net.IPAddr{IP: allRouters}),
		p.SetMulticastInterface(bridge),
		p.SetMulticastHopLimit(255), // receivers take no other
		p.SetMulticastLoopback(false),
	)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// serve advertises at once, when asked, and now and then. A failure to send is made good the next time: the guest's
// cable may not be plugged in yet.
func (l *link) serve(ctx context.Context) {
	asked := make(chan struct{}, 1)
	go l.hear(asked)
	again := time.NewTicker(advertiseEvery)
	defer again.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-ctx.Done():
			return
		}
		_, _ = l.conn.WriteTo(l.text, &net.IPAddr{IP: allNodes, Zone: l.bridge})
		select {
		case <-asked:
		case <-again.C:
		case <-ctx.Done():
			return
		}
		pause.Reset(advertisePause)
	}
}

// hear reports each solicitation until the socket is closed.
func (l *link) hear(asked chan<- struct{}) {
	var b [1]byte // whatever else the kernel has of it is dropped
	for {
		if _, _, err := l.conn.ReadFrom(b[:]); err != nil {
			return
		}
		select {
		case asked <- struct{}{}:
		default: // one is waiting
		}
	}
}
