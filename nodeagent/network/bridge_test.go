package network

import (
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"google.golang.org/protobuf/testing/protocmp"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

const podMAC = "0a:58:0a:63:00:02"

func bridged(t *testing.T) []Port {
	t.Helper()
	l, err := Layout(vmi(v1.Interface{Name: "default", InterfaceBindingMethod: v1.InterfaceBindingMethod{Bridge: &v1.InterfaceBridge{}}}, &v1.PodNetwork{}))
	must(t, err)
	return l
}

// bridgedPod is a client and a Pod with one more route, as a CNI plugin leaves it.
func bridgedPod(t *testing.T) (client, pod *os.File) {
	t.Helper()
	client, pod = namespace(t), namespace(t)
	wire(t, client, "veth0", pod, Uplink)
	raise(t, client, "veth0", clientIP+"/24", "")
	must(t, onThread(pod, func() error {
		link, err := netlink.LinkByName(Uplink)
		if err != nil {
			return err
		}
		mac, err := net.ParseMAC(podMAC)
		return errors.Join(err, netlink.LinkSetHardwareAddr(link, mac))
	}))
	raise(t, pod, Uplink, podIP+"/24", clientIP)
	must(t, onThread(pod, func() error {
		link, err := netlink.LinkByName(Uplink)
		if err != nil {
			return err
		}
		_, services, _ := net.ParseCIDR("10.96.0.0/16")
		_, router, _ := net.ParseCIDR("169.254.1.1/32")
		return errors.Join(
			netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: services, Gw: net.ParseIP("10.99.0.9")}),
			netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: router, Scope: netlink.SCOPE_LINK}),
		)
	}))
	return client, pod
}

func handed() *guestv1.Interface {
	return &guestv1.Interface{
		Name: "default", Tap: "tap0", Mac: podMAC, Mtu: 1450, Queues: 1,
		Lease: &guestv1.Lease{
			Bridge: "k6t-eth0", Address: podIP + "/24", Gateway: clientIP, Server: "169.254.75.10", Hostname: "web",
			Routes: []*guestv1.Route{{Destination: "10.96.0.0/16", Gateway: "10.99.0.9"}, {Destination: "169.254.1.1/32"}},
		},
	}
}

func TestTheGuestHasThePodsAddress(t *testing.T) {
	client, pod := bridgedPod(t)
	for _, when := range []string{"once", "twice", "and again"} {
		facts, err := Prepare(pod, Addresses([]string{podIP}), bridged(t))
		must(t, err)
		if d := cmp.Diff([]*guestv1.Interface{handed()}, facts, protocmp.Transform()); d != "" {
			t.Fatalf("prepared %s: %s", when, d)
		}
	}
	guest := namespace(t)
	plugIn(t, pod, guest, podMAC)
	raise(t, guest, "eth0", podIP+"/24", clientIP)
	if got, err := call(t, client, podIP+":80", guest, podIP+":80"); err != nil || got != clientIP {
		t.Errorf("into the guest: got %q, %v", got, err)
	}
	if got, err := call(t, guest, clientIP+":81", client, clientIP+":81"); err != nil || got != podIP {
		t.Errorf("out of the guest: got %q, %v", got, err)
	}
}

// A node agent may die between any two steps: whatever it leaves, the next one gets to the same end.
func TestHandingOverGoesOnAfterACrash(t *testing.T) {
	p := bridged(t)[0]
	begin := func(h *netlink.Handle) (uplink, bridge netlink.Link, err error) {
		uplink, err1 := p.original(h)
		bridge, err2 := ensure(h, &netlink.Bridge{LinkAttrs: attributes(p.Bridge, 1450)})
		return uplink, bridge, errors.Join(err1, err2)
	}
	steps := []func(h *netlink.Handle, uplink, bridge netlink.Link) error{
		recordRoutes,
		func(h *netlink.Handle, uplink, _ netlink.Link) error { return p.standIn(h, uplink) },
		func(h *netlink.Handle, uplink, _ netlink.Link) error { return h.LinkSetDown(uplink) },
		func(h *netlink.Handle, uplink, _ netlink.Link) error { return rename(h, uplink, p.Original) },
		func(h *netlink.Handle, uplink, bridge netlink.Link) error { return p.swap(h, uplink, bridge) },
		func(h *netlink.Handle, _, bridge netlink.Link) error { return p.enslave(h, bridge) },
	}
	for done := range len(steps) + 1 {
		_, pod := bridgedPod(t)
		must(t, onThread(pod, func() error {
			h, err := netlink.NewHandle()
			if err != nil {
				return err
			}
			defer h.Close()
			for _, step := range steps[:done] {
				uplink, bridge, err := begin(h)
				if err := errors.Join(err, step(h, uplink, bridge)); err != nil {
					return err
				}
			}
			return nil
		}))
		facts, err := Prepare(pod, Addresses([]string{podIP}), bridged(t))
		if err != nil {
			t.Errorf("after %d steps: %v", done, err)
			continue
		}
		if d := cmp.Diff([]*guestv1.Interface{handed()}, facts, protocmp.Transform()); d != "" {
			t.Errorf("after %d steps: %s", done, d)
		}
		got := devices(t, pod)
		slices.Sort(got)
		if d := cmp.Diff([]string{"eth0", "eth0-nic", "k6t-eth0", "lo", "tap0"}, got); d != "" {
			t.Errorf("after %d steps: %s", done, d)
		}
	}
}

func TestAnInterfaceThatIsNotThereIsNamed(t *testing.T) {
	_, pod := bridgedPod(t)
	missing := vmi(v1.Interface{Name: "red", InterfaceBindingMethod: v1.InterfaceBindingMethod{Bridge: &v1.InterfaceBridge{}}}, nil)
	missing.Spec.Networks[0].Multus = &v1.MultusNetwork{NetworkName: "red-net"}
	ports, err := Layout(missing)
	must(t, err)
	_, err = Prepare(pod, Addresses([]string{podIP}), ports)
	if err == nil || !strings.Contains(err.Error(), `"red"`) || !strings.Contains(err.Error(), "podb1f51a511f1") {
		t.Errorf("got %v", err)
	}
}
