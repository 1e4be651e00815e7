package network

import (
	"bytes"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// routers returns the IPv6 routers that a namespace has learned from advertisements.
func routers(t *testing.T, ns *os.File) (found []string) {
	t.Helper()
	must(t, onThread(ns, func() error {
		routes, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{Protocol: unix.RTPROT_RA}, netlink.RT_FILTER_PROTOCOL)
		for _, r := range routes {
			if r.Gw != nil {
				found = append(found, r.Gw.String())
			}
		}
		return err
	}))
	return found
}

// bare is a guest that has plugged its cable in and nothing else.
func bare(t *testing.T, ports []Port) (pod, guest *os.File) {
	t.Helper()
	client, pod, guest := namespace(t), namespace(t), namespace(t)
	wire(t, client, "veth0", pod, Uplink)
	raise(t, client, "veth0", clientIP6+"/64", "")
	raise(t, pod, Uplink, podIP6+"/64", clientIP6)
	_, err := Prepare(pod, Addresses([]string{podIP6}), ports)
	must(t, err)
	plugIn(t, pod, guest, "")
	return pod, guest
}

func TestTheGuestLearnsItsRouter(t *testing.T) {
	ports := layout(t)
	pod, guest := bare(t, ports)
	for _, when := range []string{"at first", "after the node agent was away"} {
		a, err := Advertise(pod, Addresses([]string{podIP6}), ports)
		must(t, err)
		raise(t, guest, "eth0", "", "")
		deadline := time.Now().Add(15 * time.Second)
		for len(routers(t, guest)) == 0 && time.Now().Before(deadline) {
			waitFor(50 * time.Millisecond)
		}
		if got := routers(t, guest); len(got) != 1 || got[0] != "fe80::1" {
			t.Fatalf("%s: routers are %v", when, got)
		}
		a.Close()
		must(t, onThread(guest, func() error {
			link, err := netlink.LinkByName("eth0")
			return errors.Join(err, netlink.LinkSetDown(link)) // it forgets
		}))
	}
}

func waitFor(d time.Duration) { <-time.After(d) }

func TestAPodWithoutIPv6HasNoRouter(t *testing.T) {
	_, pod := bridgedPod(t)
	_, err := Prepare(pod, Addresses([]string{podIP}), layout(t))
	must(t, err)
	a, err := Advertise(pod, Addresses([]string{podIP}), layout(t))
	must(t, err)
	defer a.Close()
	if len(a.links) != 0 {
		t.Errorf("advertises on %d links", len(a.links))
	}
}

func TestNothingIsAdvertisedInAForeignNamespace(t *testing.T) {
	pod, _ := bare(t, layout(t))
	if _, err := Advertise(pod, Addresses([]string{"fd99::77"}), layout(t)); !errors.Is(err, ErrNotThePods) {
		t.Errorf("got %v, want %v", err, ErrNotThePods)
	}
}

// A guest that asks without end gets no more than one answer in a pause.
func TestSolicitationsAreAnsweredWithinBounds(t *testing.T) {
	ports := layout(t)
	pod, guest := bare(t, ports)
	raise(t, guest, "eth0", "fe80::2/64", "")
	a, err := Advertise(pod, Addresses([]string{podIP6}), ports)
	must(t, err)
	defer a.Close()
	var conn net.PacketConn
	must(t, onThread(guest, func() (err error) {
		conn, err = net.ListenPacket("ip6:ipv6-icmp", "fe80::2%eth0")
		return err
	}))
	defer conn.Close()
	solicitation := append([]byte{133, 0, 0, 0, 0, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 1000)...)
	for limit := time.Now().Add(10 * time.Second); ; waitFor(10 * time.Millisecond) { // the kernel takes note of a link in its own time
		_, err := conn.WriteTo(solicitation, &net.IPAddr{IP: allRouters, Zone: "eth0"})
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENETUNREACH) || time.Now().After(limit) {
			t.Fatal(err)
		}
	}
	const span = 3 * advertisePause
	must(t, conn.SetReadDeadline(time.Now().Add(span)))
	answers := 0
	for b := make([]byte, 1500); ; {
		if _, err := conn.WriteTo(solicitation, &net.IPAddr{IP: allRouters, Zone: "eth0"}); err != nil {
			t.Fatal(err)
		}
		n, _, err := conn.ReadFrom(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		must(t, err)
		if n > 0 && b[0] == 134 {
			answers++
		}
	}
	if answers < 1 || answers > int(span/advertisePause)+2 {
		t.Errorf("%d answers in %s", answers, span)
	}
}
