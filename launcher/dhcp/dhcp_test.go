package dhcp_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"virtstack.io/virtstack/launcher/dhcp"
)

var (
	mac   = net.HardwareAddr{0x02, 0, 0, 1, 2, 3}
	lease = dhcp.Lease{
		MAC: mac, Address: netip.MustParsePrefix("10.0.2.2/24"), Gateway: netip.MustParseAddr("10.0.2.1"), Server: netip.MustParseAddr("10.0.2.1"),
		DNS:    []netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00::a")},
		Search: []string{"vms.svc.cluster.local", "cluster.local"}, Hostname: "web", MTU: 1450,
	}
)

func TestTheGuestGetsItsLease(t *testing.T) {
	discover, err := dhcpv4.NewDiscovery(mac)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := lease.Reply(discover)
	if err != nil {
		t.Fatal(err)
	}
	request, err := dhcpv4.NewRequestFromOffer(offer)
	if err != nil {
		t.Fatal(err)
	}
	ack, err := lease.Reply(request)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"types": offer.MessageType().String() + " " + ack.MessageType().String(), "address": ack.YourIPAddr.String(),
		"mask": ack.SubnetMask().String(), "router": ack.Router()[0].String(), "dns": ack.DNS()[0].String(),
		"host": ack.HostName(), "search": ack.DomainSearch().Labels[0], "id": ack.ServerIdentifier().String(),
	}
	want := map[string]string{
		"types": "OFFER ACK", "address": "10.0.2.2", "mask": "ffffff00", "router": "10.0.2.1", "dns": "10.96.0.10",
		"host": "web", "search": "vms.svc.cluster.local", "id": "10.0.2.1",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if mtu := ack.Options.Get(dhcpv4.OptionInterfaceMTU); !slices.Equal(mtu, []byte{5, 170}) {
		t.Errorf("MTU option is %v, want 1450", mtu)
	}
}

func TestOtherRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		mods []dhcpv4.Modifier
		want dhcpv4.MessageType // MessageTypeNone: no answer
	}{
		"renewal":         {[]dhcpv4.Modifier{dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithClientIP(net.IPv4(10, 0, 2, 2))}, dhcpv4.MessageTypeAck},
		"another address": {[]dhcpv4.Modifier{dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(10, 0, 2, 9)))}, dhcpv4.MessageTypeNak},
		"another server":  {[]dhcpv4.Modifier{dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 0, 2, 7)))}, dhcpv4.MessageTypeNak},
		"inform":          {[]dhcpv4.Modifier{dhcpv4.WithMessageType(dhcpv4.MessageTypeInform)}, dhcpv4.MessageTypeAck},
		"release":         {[]dhcpv4.Modifier{dhcpv4.WithMessageType(dhcpv4.MessageTypeRelease)}, dhcpv4.MessageTypeNone},
		"somebody else":   {[]dhcpv4.Modifier{dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover), dhcpv4.WithHwAddr(net.HardwareAddr{2, 9, 9, 9, 9, 9})}, dhcpv4.MessageTypeNone},
	} {
		t.Run(name, func(t *testing.T) {
			request, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(mac)}, tc.mods...)...)
			if err != nil {
				t.Fatal(err)
			}
			reply, err := lease.Reply(request)
			got := dhcpv4.MessageTypeNone
			if err == nil {
				got = reply.MessageType()
			}
			if got != tc.want {
				t.Errorf("got %s (%v), want %s", got, err, tc.want)
			}
		})
	}
}

func TestResolver(t *testing.T) {
	servers, search := dhcp.Resolver([]byte("search a b\n# no\nnameserver 10.96.0.10\nnameserver x\noptions ndots:5\nnameserver fd00::a\n"))
	if d := cmp.Diff([]netip.Addr{netip.MustParseAddr("10.96.0.10"), netip.MustParseAddr("fd00::a")}, servers, cmpopts.EquateComparable(netip.Addr{})); d != "" {
		t.Error(d)
	}
	if !slices.Equal(search, []string{"a", "b"}) {
		t.Errorf("search %v", search)
	}
}

func FuzzReply(f *testing.F) {
	discover, err := dhcpv4.NewDiscovery(mac)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(discover.ToBytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		request, err := dhcpv4.FromBytes(raw)
		if err != nil {
			return
		}
		if reply, err := lease.Reply(request); err == nil && len(reply.ToBytes()) > 1500 {
			t.Errorf("a reply of %d bytes", len(reply.ToBytes()))
		}
	})
}
