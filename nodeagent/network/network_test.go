package network

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	v1 "kubevirt.io/api/core/v1"
)

const (
	podIP, podIP6       = "10.99.0.2", "fd99::2"
	clientIP, clientIP6 = "10.99.0.1", "fd99::1"
	guestIP, guestIP6   = "10.0.2.2", "fd10:0:2::2"
)

// namespace makes a network namespace that goes with the test.
func namespace(t *testing.T) *os.File {
	t.Helper()
	type result struct {
		ns  *os.File
		err error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- result{nil, err}
			return
		}
		ns, err := os.Open("/proc/thread-self/ns/net")
		made <- result{ns, err}
	}()
	r := <-made
	if r.err != nil {
		t.Fatalf("making a network namespace (it takes root): %v", r.err)
	}
	t.Cleanup(func() { r.ns.Close() })
	return r.ns
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wire connects a to b by a veth pair.
func wire(t *testing.T, a *os.File, nameA string, b *os.File, nameB string) {
	t.Helper()
	must(t, onThread(a, func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = nameA, 1450
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: nameB, PeerMTU: 1450, PeerNamespace: netlink.NsFd(int(b.Fd()))})
	}))
}

// raise gives a device an address, where it has one, and a default route, where one is asked for.
func raise(t *testing.T, ns *os.File, name, cidr, gateway string) {
	t.Helper()
	must(t, onThread(ns, func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		var errs []error
		if cidr != "" {
			addr, err := netlink.ParseAddr(cidr)
			if addr.IP.To4() == nil {
				addr.Flags = addressInUse // no time is lost on asking whether others have it
			}
			errs = append(errs, err, netlink.AddrAdd(link, addr))
		}
		errs = append(errs, netlink.LinkSetUp(link))
		if gateway != "" {
			errs = append(errs, netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gateway)}))
		}
		return errors.Join(errs...)
	}))
}

// cluster is a client, a Pod, and a guest that is another namespace with its cable in the Pod's bridge.
func cluster(t *testing.T, ports []Port) (client, pod, guest *os.File) {
	t.Helper()
	client, pod, guest = namespace(t), namespace(t), namespace(t)
	wire(t, client, "veth0", pod, Uplink)
	raise(t, client, "veth0", clientIP+"/24", "")
	raise(t, client, "veth0", clientIP6+"/64", "")
	raise(t, pod, Uplink, podIP+"/24", clientIP)
	raise(t, pod, Uplink, podIP6+"/64", clientIP6)
	raise(t, pod, "lo", "", "")
	_, err := Prepare(pod, Addresses([]string{podIP, podIP6}), ports)
	must(t, err)
	plugIn(t, pod, guest, "")
	raise(t, guest, "eth0", guestIP+"/24", "10.0.2.1")
	raise(t, guest, "eth0", guestIP6+"/120", "fd10:0:2::1")
	return client, pod, guest
}

// plugIn puts the guest's cable, by which it has eth0 of that MAC, into the Pod's bridge.
func plugIn(t *testing.T, pod, guest *os.File, mac string) {
	t.Helper()
	wire(t, pod, "cable", guest, "eth0")
	must(t, onThread(pod, func() error {
		cable, err1 := netlink.LinkByName("cable")
		bridge, err2 := netlink.LinkByName("k6t-eth0")
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		return errors.Join(netlink.LinkSetMaster(cable, bridge), netlink.LinkSetUp(cable))
	}))
	if mac == "" {
		return
	}
	must(t, onThread(guest, func() error {
		eth0, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		address, err := net.ParseMAC(mac)
		return errors.Join(err, netlink.LinkSetHardwareAddr(eth0, address))
	}))
}

// call dials from one namespace to a listener in another and returns whom the listener saw.
func call(t *testing.T, from *os.File, dial string, at *os.File, listen string) (peer string, err error) {
	t.Helper()
	var l net.Listener
	must(t, onThread(at, func() (err error) {
		l, err = net.Listen("tcp", listen)
		return err
	}))
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
		io.WriteString(c, host)
		c.Close()
	}()
	err = onThread(from, func() error {
		c, err := net.DialTimeout("tcp", dial, 4*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		peer = string(b)
		return err
	})
	return peer, err
}

func layout(t *testing.T, ports ...v1.Port) []Port {
	t.Helper()
	l, err := Layout(vmi(masqueraded("default", ports...), &v1.PodNetwork{}))
	must(t, err)
	return l
}

// calls are made by name: from a namespace to an address, at which another listens; wantPeer is whom that one sees.
type calls map[string]struct {
	from     *os.File
	dial     string
	at       *os.File
	listen   string
	wantPeer string
}

func (c calls) check(t *testing.T, when string) {
	t.Helper()
	for name, tc := range c {
		if got, err := call(t, tc.from, tc.dial, tc.at, tc.listen); err != nil || got != tc.wantPeer {
			t.Errorf("%s%s: got %q, %v; want %q", when, name, got, err, tc.wantPeer)
		}
	}
}

func TestTheGuestIsReachedAtThePodsAddress(t *testing.T) {
	ports := layout(t)
	client, pod, guest := cluster(t, ports)
	check := func(when string) {
		t.Helper()
		calls{
			"into the guest":         {client, podIP + ":80", guest, guestIP + ":80", clientIP},
			"out of the guest":       {guest, clientIP + ":81", client, clientIP + ":81", podIP},
			"from the Pod itself":    {pod, "127.0.0.1:82", guest, guestIP + ":82", "10.0.2.1"},
			"into the guest, IPv6":   {client, "[" + podIP6 + "]:80", guest, "[" + guestIP6 + "]:80", clientIP6},
			"out of the guest, IPv6": {guest, "[" + clientIP6 + "]:81", client, "[" + clientIP6 + "]:81", podIP6},
		}.check(t, when+", ")
	}
	check("prepared once")
	_, err := Prepare(pod, Addresses([]string{podIP}), ports)
	must(t, err)
	check("prepared twice")
}

// A client isn't told that there is no route to a guest that takes its time: it waits until the guest has its address.
func TestASlowGuestIsWaitedFor(t *testing.T) {
	for name, address := range map[string]struct{ guest, bits, gateway, dial, family string }{
		"IPv4": {guestIP, "/24", "10.0.2.1", podIP + ":80", "tcp4"},
		"IPv6": {guestIP6, "/120", "", "[" + podIP6 + "]:80", "tcp6"}, // which keeps its route
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _, guest := cluster(t, layout(t))
			var l net.Listener
			must(t, onThread(guest, func() (err error) {
				l, err = net.Listen(address.family, ":80")
				return err
			}))
			defer l.Close()
			own, err := netlink.ParseAddr(address.guest + address.bits)
			must(t, err)
			must(t, onThread(guest, func() error {
				eth0, err := netlink.LinkByName("eth0")
				return errors.Join(err, netlink.AddrDel(eth0, own))
			}))
			failed := make(chan error, 1)
			go func() {
				failed <- onThread(client, func() error {
					c, err := net.DialTimeout("tcp", address.dial, 20*time.Second)
					if err == nil {
						c.Close()
					}
					return err
				})
			}()
			waitFor(5 * time.Second) // longer than the kernel asks by itself
			raise(t, guest, "eth0", address.guest+address.bits, address.gateway)
			must(t, <-failed)
		})
	}
}

// The bridge routes loopback addresses, for port forwards into the Pod: the guest must not profit.
func TestTheGuestDoesNotReachThePodsLoopback(t *testing.T) {
	_, pod, guest := cluster(t, layout(t))
	must(t, onThread(guest, func() error {
		_, loopback, _ := net.ParseCIDR("127.0.0.0/8")
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: loopback, Gw: net.ParseIP("10.0.2.1")}); err != nil {
			return err
		}
		return set("net/ipv4/conf/eth0/route_localnet", "1")
	}))
	if got, err := call(t, guest, "127.0.0.1:90", pod, "127.0.0.1:90"); err == nil {
		t.Errorf("reached as %q", got)
	}
}

func TestOnlyListedPortsReachTheGuest(t *testing.T) {
	client, _, guest := cluster(t, layout(t, v1.Port{Port: 80}, v1.Port{Port: 53, Protocol: "UDP"}))
	for port, want := range map[int]bool{80: true, 81: false, 53: false} {
		p := ":" + strconv.Itoa(port)
		if _, err := call(t, client, podIP+p, guest, guestIP+p); (err == nil) != want {
			t.Errorf("port %d: reached is %v, want %v: %v", port, err == nil, want, err)
		}
	}
}

func TestDevicesAreTheSameHoweverOftenPrepared(t *testing.T) {
	pod, ports := namespace(t), layout(t)
	client := namespace(t)
	wire(t, client, "veth0", pod, Uplink)
	raise(t, pod, Uplink, podIP+"/24", "")
	var first []string
	for range 3 {
		facts, err := Prepare(pod, Addresses([]string{podIP}), ports)
		must(t, err)
		if facts[0].Mtu != 1450 {
			t.Errorf("MTU is %d, want the uplink's 1450", facts[0].Mtu)
		}
		got := devices(t, pod)
		if first == nil {
			first = got
		}
		if len(got) != len(first) {
			t.Errorf("devices are %v, were %v", got, first)
		}
	}
	must(t, onThread(pod, func() error {
		tap, err := netlink.LinkByName("tap0")
		if err != nil {
			return err
		}
		if o := tap.(*netlink.Tuntap); o.Owner != 107 || o.Group != 107 {
			t.Errorf("tap is owned by %d:%d", o.Owner, o.Group)
		}
		bridge, err := netlink.LinkByName("k6t-eth0")
		if err == nil && bridge.Attrs().HardwareAddr.String() != "02:00:00:00:00:00" {
			t.Errorf("bridge has MAC %s", bridge.Attrs().HardwareAddr)
		}
		return err
	}))
}

func devices(t *testing.T, ns *os.File) (names []string) {
	t.Helper()
	must(t, onThread(ns, func() error {
		links, err := netlink.LinkList()
		for _, l := range links {
			names = append(names, l.Attrs().Name)
		}
		return err
	}))
	return names
}

// A rule in a namespace that is not the Pod's would cut off whoever lives there.
func TestNothingIsDoneInAForeignNamespace(t *testing.T) {
	own, err := os.Open("/proc/thread-self/ns/net")
	must(t, err)
	defer own.Close()
	bare, other := namespace(t), namespace(t)
	wire(t, bare, "veth0", other, Uplink)
	raise(t, other, Uplink, "10.99.0.3/24", "")
	for name, ns := range map[string]*os.File{"own": own, "without uplink": bare, "another Pod's": other} {
		before := devices(t, ns)
		if _, err := Prepare(ns, Addresses([]string{podIP}), layout(t)); !errors.Is(err, ErrNotThePods) {
			t.Errorf("%s: got %v, want %v", name, err, ErrNotThePods)
		}
		if after := devices(t, ns); len(after) != len(before) {
			t.Errorf("%s: devices are %v, were %v", name, after, before)
		}
	}
	if _, err := Prepare(other, []netip.Addr{}, layout(t)); !errors.Is(err, ErrNotThePods) {
		t.Errorf("Pod without address: got %v, want %v", err, ErrNotThePods)
	}
}
