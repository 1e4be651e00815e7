package dhcp_test

import (
	"net"
	"strings"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv6"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/dhcp"
)

func given6() *guestv1.Interface {
	return &guestv1.Interface{Lease6: &guestv1.Lease6{Bridge: "k6t-eth0", Address: "fd10:0:2::2", ServerMac: "02:00:00:00:00:00"}}
}

func lease6(t testing.TB) dhcp.Lease6 {
	t.Helper()
	l, err := dhcp.From6(given6(), []byte("search vms.svc.cluster.local\nnameserver 10.96.0.10\nnameserver fd00::a\n"))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestTheGuestGetsItsIPv6Address(t *testing.T) {
	l := lease6(t)
	solicit, err := dhcpv6.NewSolicit(mac)
	if err != nil {
		t.Fatal(err)
	}
	rapid, err := dhcpv6.NewSolicit(mac, dhcpv6.WithRapidCommit)
	if err != nil {
		t.Fatal(err)
	}
	advertise, err := l.Reply(solicit)
	if err != nil {
		t.Fatal(err)
	}
	request, err := dhcpv6.NewRequestFromAdvertise(advertise)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		ask  *dhcpv6.Message
		want dhcpv6.MessageType
	}{
		"solicit":       {solicit, dhcpv6.MessageTypeAdvertise},
		"rapid commit":  {rapid, dhcpv6.MessageTypeReply},
		"request":       {request, dhcpv6.MessageTypeReply},
		"a reply of no": {advertise, dhcpv6.MessageTypeNone},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := l.Reply(tc.ask)
			if tc.want == dhcpv6.MessageTypeNone {
				if err == nil {
					t.Errorf("answered by %s", got.Summary())
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			address := got.Options.OneIANA().Options.OneAddress()
			asked := tc.ask.Options.OneIANA().IaId
			if got.Type() != tc.want || !address.IPv6Addr.Equal(net.ParseIP("fd10:0:2::2")) || got.Options.OneIANA().IaId != asked {
				t.Errorf("got %s, want a %s", got.Summary(), tc.want)
			}
			if dns := got.Options.DNS(); len(dns) != 1 || !dns[0].Equal(net.ParseIP("fd00::a")) {
				t.Errorf("name servers are %v", dns)
			}
		})
	}
}

func TestBadIPv6LeasesAreRefused(t *testing.T) {
	for want, change := range map[string]func(*guestv1.Lease6){
		"10.0.2.2": func(l *guestv1.Lease6) { l.Address = "10.0.2.2" },
		"MAC":      func(l *guestv1.Lease6) { l.ServerMac = "" },
		"::ffff":   func(l *guestv1.Lease6) { l.Address = "::ffff:10.0.2.2" },
	} {
		i := given6()
		change(i.Lease6)
		if _, err := dhcp.From6(i, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func FuzzReply6(f *testing.F) {
	solicit, err := dhcpv6.NewSolicit(mac)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(solicit.ToBytes())
	l := lease6(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		request, err := dhcpv6.FromBytes(raw)
		if err != nil {
			return
		}
		if reply, err := l.Reply(request); err == nil && len(reply.ToBytes()) > 1500 {
			t.Errorf("a reply of %d bytes", len(reply.ToBytes()))
		}
	})
}
