package dhcp_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/dhcp"
)

const podResolver = "search vms.svc.cluster.local cluster.local\nnameserver 10.96.0.10\n"

// given is an interface as a node agent describes it.
func given(change func(*guestv1.Interface)) *guestv1.Interface {
	i := &guestv1.Interface{
		Name: "default", Tap: "tap0", Mac: "02:00:00:01:02:03", Mtu: 1450,
		Lease: &guestv1.Lease{Bridge: "k6t-default", Address: "10.0.2.2/24", Gateway: "10.0.2.1", Hostname: "web"},
	}
	change(i)
	return i
}

func TestLeaseOfAnInterface(t *testing.T) {
	pod := dhcp.Lease{
		MAC: mac, Address: lease.Address, Gateway: lease.Gateway, Server: lease.Server, DNS: lease.DNS[:1],
		Search: []string{"vms.svc.cluster.local", "cluster.local"}, Hostname: "web", MTU: 1450,
	}
	with := func(change func(*dhcp.Lease)) dhcp.Lease {
		l := pod
		change(&l)
		return l
	}
	for name, tc := range map[string]struct {
		change   func(*guestv1.Interface)
		resolver string
		want     dhcp.Lease
	}{
		"the Pod's resolver":   {func(*guestv1.Interface) {}, podResolver, pod},
		"a Pod without one":    {func(*guestv1.Interface) {}, "", with(func(l *dhcp.Lease) { l.DNS, l.Search = nil, nil })},
		"given name servers":   {func(i *guestv1.Interface) { i.Lease.DnsServers = []string{"10.1.1.1"} }, podResolver, with(func(l *dhcp.Lease) { l.DNS = []netip.Addr{netip.MustParseAddr("10.1.1.1")} })},
		"given search domains": {func(i *guestv1.Interface) { i.Lease.DnsSearch = []string{"x"} }, podResolver, with(func(l *dhcp.Lease) { l.Search = []string{"x"} })},
		"a bridged guest": {func(i *guestv1.Interface) {
			i.Lease.Server, i.Lease.Routes = "169.254.75.10", []*guestv1.Route{{Destination: "10.96.0.0/16", Gateway: "10.0.2.9"}, {Destination: "169.254.1.1/32"}}
		}, podResolver, with(func(l *dhcp.Lease) {
			l.Server = netip.MustParseAddr("169.254.75.10")
			l.Routes = []dhcp.Route{{Destination: netip.MustParsePrefix("10.96.0.0/16"), Gateway: netip.MustParseAddr("10.0.2.9")}, {Destination: netip.MustParsePrefix("169.254.1.1/32")}}
		})},
		"without a gateway": {func(i *guestv1.Interface) { i.Lease.Server, i.Lease.Gateway = "169.254.75.10", "" }, podResolver, with(func(l *dhcp.Lease) {
			l.Server, l.Gateway = netip.MustParseAddr("169.254.75.10"), netip.Addr{}
		})},
		"a subdomain": {func(i *guestv1.Interface) { i.Lease.Subdomain = "db" }, podResolver, with(func(l *dhcp.Lease) {
			l.Search = []string{"db.vms.svc.cluster.local", "vms.svc.cluster.local", "cluster.local"}
		})},
		"options": {func(i *guestv1.Interface) {
			i.Lease.Options = &guestv1.DhcpOptions{BootFileName: "pxe.0", TftpServerName: "tftp", NtpServers: []string{"10.1.1.1"}, PrivateOptions: map[uint32]string{240: "x"}}
		}, podResolver, with(func(l *dhcp.Lease) {
			l.Options = dhcp.Options{BootFile: "pxe.0", TFTPServer: "tftp", NTP: []netip.Addr{netip.MustParseAddr("10.1.1.1")}, Private: map[uint8]string{240: "x"}}
		})},
		"a huge MTU": {func(i *guestv1.Interface) { i.Mtu = 1 << 20 }, podResolver, with(func(l *dhcp.Lease) { l.MTU = 65535 })},
	} {
		got, err := dhcp.From(given(tc.change), []byte(tc.resolver))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestBadLeasesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*guestv1.Interface)
		want   string
	}{
		"no lease":              {func(i *guestv1.Interface) { i.Lease = nil }, "address"},
		"no MAC":                {func(i *guestv1.Interface) { i.Mac = "" }, "MAC"},
		"a MAC of eight bytes":  {func(i *guestv1.Interface) { i.Mac = "02:00:00:01:02:03:04:05" }, "MAC"},
		"no prefix":             {func(i *guestv1.Interface) { i.Lease.Address = "10.0.2.2" }, "10.0.2.2"},
		"IPv6":                  {func(i *guestv1.Interface) { i.Lease.Address = "fd00::2/64" }, "IPv4"},
		"an IPv6 gateway":       {func(i *guestv1.Interface) { i.Lease.Gateway = "fd00::1" }, "gateway"},
		"a gateway's name":      {func(i *guestv1.Interface) { i.Lease.Gateway = "router" }, "gateway"},
		"no gateway, no server": {func(i *guestv1.Interface) { i.Lease.Gateway = "" }, "gateway"},
		"a server's name":       {func(i *guestv1.Interface) { i.Lease.Server = "dhcp" }, "dhcp"},
		"an IPv6 route":         {func(i *guestv1.Interface) { i.Lease.Routes = []*guestv1.Route{{Destination: "fd00::/64"}} }, "fd00::/64"},
		"an NTP server's name":  {func(i *guestv1.Interface) { i.Lease.Options = &guestv1.DhcpOptions{NtpServers: []string{"ntp"}} }, "ntp"},
		"the router by number": {func(i *guestv1.Interface) {
			i.Lease.Options = &guestv1.DhcpOptions{PrivateOptions: map[uint32]string{3: "x"}}
		}, "224 to 254"},
		"a long search list":   {func(i *guestv1.Interface) { i.Lease.DnsSearch = []string{strings.Repeat("x", 254)} }, "search domains"},
		"a name server's name": {func(i *guestv1.Interface) { i.Lease.DnsServers = []string{"10.1.1.1", "dns"} }, "dns"},
	} {
		if got, err := dhcp.From(given(tc.change), nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %+v, %v; want an error with %q", name, got, err, tc.want)
		}
	}
}
