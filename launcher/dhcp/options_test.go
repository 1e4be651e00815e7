package dhcp_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"

	"virtstack.io/virtstack/launcher/dhcp"
)

func discovered(t *testing.T, l dhcp.Lease) *dhcpv4.DHCPv4 {
	t.Helper()
	discover, err := dhcpv4.NewDiscovery(mac)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := l.Reply(discover)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := dhcpv4.FromBytes(offer.ToBytes())
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestABridgedGuestLearnsThePodsRoutes(t *testing.T) {
	l := lease
	l.Server = netip.MustParseAddr("169.254.75.10")
	l.Routes = []dhcp.Route{
		{Destination: netip.MustParsePrefix("10.96.0.0/16"), Gateway: netip.MustParseAddr("10.0.2.9")},
		{Destination: netip.MustParsePrefix("169.254.1.1/32")},
	}
	got := discovered(t, l)
	var routes []string
	for _, r := range got.ClasslessStaticRoute() {
		routes = append(routes, r.Dest.String()+" by "+r.Router.String())
	}
	want := []string{"10.96.0.0/16 by 10.0.2.9", "169.254.1.1/32 by 0.0.0.0", "0.0.0.0/0 by 10.0.2.1"}
	if d := cmp.Diff(want, routes); d != "" {
		t.Error(d)
	}
	if id := got.ServerIdentifier(); !id.Equal(net.IPv4(169, 254, 75, 10)) {
		t.Errorf("the server is %s", id)
	}
}

func TestOptionsThatTheOwnerAsksFor(t *testing.T) {
	l := lease
	l.Options = dhcp.Options{BootFile: "pxe.0", TFTPServer: "tftp", NTP: []netip.Addr{netip.MustParseAddr("10.1.1.1")}, Private: map[uint8]string{224: "a", 254: "b"}}
	got := discovered(t, l)
	said := map[string]string{
		"boot": got.BootFileNameOption(), "tftp": got.TFTPServerName(), "ntp": got.NTPServers()[0].String(), "domain": got.DomainName(),
		"224": string(got.Options.Get(dhcpv4.GenericOptionCode(224))), "254": string(got.Options.Get(dhcpv4.GenericOptionCode(254))),
		"time": got.IPAddressLeaseTime(0).String(),
	}
	want := map[string]string{"boot": "pxe.0", "tftp": "tftp", "ntp": "10.1.1.1", "domain": "vms.svc.cluster.local", "224": "a", "254": "b", "time": "1193046h28m15s"}
	if d := cmp.Diff(want, said); d != "" {
		t.Error(d)
	}
}

// Behind masquerade a guest may change its MAC address: it is alone on its link.
func TestAnyClientIsAnsweredWhereTheGuestIsAlone(t *testing.T) {
	l := lease
	l.AnyClient = true
	discover, err := dhcpv4.NewDiscovery(net.HardwareAddr{2, 9, 9, 9, 9, 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reply(discover); err != nil {
		t.Error(err)
	}
}
