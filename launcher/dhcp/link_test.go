package dhcp_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/launcher/dhcp"
)

// in runs do on a thread of its own in a network namespace; nil: in a new one.
func in(t *testing.T, ns *os.File, do func() error) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		if ns == nil {
			done <- errors.Join(unix.Unshare(unix.CLONE_NEWNET), do())
			return
		}
		done <- errors.Join(unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET), do())
	}()
	if err := <-done; err != nil {
		t.Fatalf("in a network namespace (it takes root): %v", err)
	}
}

// cable is a Pod with a bridge that has the address and a guest with eth0, each in a namespace of its own, connected.
func cable(t *testing.T, address string) (pod, guest *os.File) {
	t.Helper()
	for _, ns := range []**os.File{&pod, &guest} {
		in(t, nil, func() (err error) {
			*ns, err = os.Open("/proc/thread-self/ns/net")
			return err
		})
		t.Cleanup(func() { (*ns).Close() })
	}
	up := func(name string, addresses ...string) error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		for _, text := range addresses {
			a, err := netlink.ParseAddr(text)
			if err != nil {
				return err
			}
			if a.IP.To4() == nil {
				a.Flags = unix.IFA_F_NODAD
			}
			if err := netlink.AddrAdd(link, a); err != nil {
				return fmt.Errorf("adding %s: %w", text, err)
			}
		}
		return netlink.LinkSetUp(link)
	}
	in(t, pod, func() error {
		bridge, veth := netlink.NewLinkAttrs(), netlink.NewLinkAttrs()
		bridge.Name, veth.Name = "k6t-eth0", "tap0"
		if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: bridge}); err != nil {
			return err
		}
		pair := &netlink.Veth{LinkAttrs: veth, PeerName: "eth0", PeerHardwareAddr: mac, PeerNamespace: netlink.NsFd(int(guest.Fd()))}
		if err := netlink.LinkAdd(pair); err != nil {
			return err
		}
		master, err := netlink.LinkByName("k6t-eth0")
		if err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetMaster(pair, master), up("tap0"), up("k6t-eth0", address, "fe80::1/64"))
	})
	in(t, guest, func() error { return up("eth0", "fe80::2/64") })
	return pod, guest
}

func TestLeasesAreHandedOutOnABridge(t *testing.T) {
	pod, guest := cable(t, "10.0.2.1/24")
	var four *dhcp.Server
	var six *dhcp.Server6
	in(t, pod, func() (err error) {
		if four, err = dhcp.Listen("k6t-eth0", lease); err == nil {
			six, err = dhcp.Listen6("k6t-eth0", lease6(t))
		}
		return err
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- four.Serve(ctx) }()
	go func() { ended <- six.Serve(ctx) }()
	var conn4, conn6 net.PacketConn
	in(t, guest, func() (err error) {
		if conn4, err = server4.NewIPv4UDPConn("eth0", &net.UDPAddr{IP: net.IPv4zero, Port: dhcpv4.ClientPort}); err == nil {
			conn6, err = net.ListenPacket("udp6", "[fe80::2%eth0]:546")
		}
		return err
	})
	discover, err1 := dhcpv4.NewDiscovery(mac)
	solicit, err2 := dhcpv6.NewSolicit(mac, dhcpv6.WithRapidCommit)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	offer, err := dhcpv4.FromBytes(ask(t, conn4, &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ServerPort}, discover.ToBytes()))
	if err != nil || !offer.YourIPAddr.Equal(net.IPv4(10, 0, 2, 2)) {
		t.Errorf("offered %v, %v", offer, err)
	}
	reply, err := dhcpv6.MessageFromBytes(ask(t, conn6, &net.UDPAddr{IP: dhcpv6.AllDHCPRelayAgentsAndServers, Port: dhcpv6.DefaultServerPort, Zone: "eth0"}, solicit.ToBytes()))
	if err != nil || !reply.Options.OneIANA().Options.OneAddress().IPv6Addr.Equal(net.ParseIP("fd10:0:2::2")) {
		t.Errorf("replied %v, %v", reply, err)
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Errorf("a server that is stopped: %v", err)
		}
	}
}

// A bridged guest's server has an address from which nothing can be routed, and the Pod's own is the guest's.
func TestALeaseIsHandedOutToABridgedGuest(t *testing.T) {
	pod, guest := cable(t, "169.254.75.10/32")
	bridged := lease
	bridged.Server, bridged.Address = netip.MustParseAddr("169.254.75.10"), netip.MustParsePrefix("10.244.1.9/24")
	var server *dhcp.Server
	in(t, pod, func() (err error) {
		server, err = dhcp.Listen("k6t-eth0", bridged)
		return err
	})
	go func() { _ = server.Serve(t.Context()) }()
	var conn net.PacketConn
	in(t, guest, func() (err error) {
		conn, err = server4.NewIPv4UDPConn("eth0", &net.UDPAddr{IP: net.IPv4zero, Port: dhcpv4.ClientPort})
		return err
	})
	discover, err := dhcpv4.NewDiscovery(mac)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := dhcpv4.FromBytes(ask(t, conn, &net.UDPAddr{IP: net.IPv4bcast, Port: dhcpv4.ServerPort}, discover.ToBytes()))
	if err != nil || !offer.YourIPAddr.Equal(net.IPv4(10, 244, 1, 9)) {
		t.Errorf("offered %v, %v", offer, err)
	}
}

// ask sends a request until there is an answer, for at most ten seconds.
func ask(t *testing.T, conn net.PacketConn, to net.Addr, request []byte) []byte {
	t.Helper()
	defer conn.Close()
	answer := make([]byte, 1500)
	for range 20 {
		if _, err := conn.WriteTo(request, to); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, _, err := conn.ReadFrom(answer); err == nil {
			return answer[:n]
		}
	}
	t.Fatalf("no answer from %s", to)
	return nil
}
