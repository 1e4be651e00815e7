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
		MAC: mac, Address: lease.Address, Gateway: lease.Gateway, DNS: lease.DNS[:1],
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
		"a huge MTU":           {func(i *guestv1.Interface) { i.Mtu = 1 << 20 }, podResolver, with(func(l *dhcp.Lease) { l.MTU = 65535 })},
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
		"no lease":             {func(i *guestv1.Interface) { i.Lease = nil }, "address"},
		"no MAC":               {func(i *guestv1.Interface) { i.Mac = "" }, "MAC"},
		"a MAC of eight bytes": {func(i *guestv1.Interface) { i.Mac = "02:00:00:01:02:03:04:05" }, "MAC"},
		"no prefix":            {func(i *guestv1.Interface) { i.Lease.Address = "10.0.2.2" }, "10.0.2.2"},
		"IPv6":                 {func(i *guestv1.Interface) { i.Lease.Address = "fd00::2/64" }, "IPv4"},
		"an IPv6 gateway":      {func(i *guestv1.Interface) { i.Lease.Gateway = "fd00::1" }, "gateway"},
		"a gateway's name":     {func(i *guestv1.Interface) { i.Lease.Gateway = "router" }, "gateway"},
		"a name server's name": {func(i *guestv1.Interface) { i.Lease.DnsServers = []string{"10.1.1.1", "dns"} }, "dns"},
	} {
		if got, err := dhcp.From(given(tc.change), nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %+v, %v; want an error with %q", name, got, err, tc.want)
		}
	}
}
