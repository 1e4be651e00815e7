// Package host changes this machine for the cluster, and back again: links, control groups, sysctls, loop devices.
package host

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/ci/cluster/layout"
)

// AddBridge makes the bridge that joins host and nodes, unless it is there.
func AddBridge() error {
	b := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: layout.Bridge}}
	if _, err := netlink.LinkByName(layout.Bridge); err == nil {
		return nil
	}
	if err := netlink.LinkAdd(b); err != nil {
		return fmt.Errorf("adding bridge %s: %w", layout.Bridge, err)
	}
	if err := netlink.AddrAdd(b, &netlink.Addr{IPNet: onBridge(layout.HostIP)}); err != nil {
		return fmt.Errorf("giving %s its address: %w", layout.Bridge, err)
	}
	return netlink.LinkSetUp(b)
}

func onBridge(ip string) *net.IPNet {
	return &net.IPNet{IP: net.ParseIP(ip), Mask: net.CIDRMask(24, 32)}
}

// Connect joins the network namespace of process pid, a node's first, to the bridge and sets routes on both sides.
func Connect(n layout.Node, pid int) error {
	bridge, err := netlink.LinkByName(layout.Bridge)
	if err != nil {
		return err
	}
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: n.Link(), MasterIndex: bridge.Attrs().Index},
		PeerName:  "eth0", PeerNamespace: netlink.NsPid(pid),
	}
	if err := netlink.LinkAdd(veth); err != nil {
		return fmt.Errorf("adding link %s: %w", n.Link(), err)
	}
	if err := netlink.LinkSetUp(veth); err != nil {
		return fmt.Errorf("setting link %s up: %w", n.Link(), err)
	}
	if err := inside(n, pid); err != nil {
		return fmt.Errorf("setting the network of %s: %w", n.Name(), err)
	}
	return addRoute(netlinkHandle{}, n.PodCIDR(), n.IP())
}

// inside sets addresses and routes of the node itself. Routes to nodes that don't exist yet do no harm.
func inside(n layout.Node, pid int) error {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	eth, err := h.LinkByName("eth0")
	if err != nil {
		return err
	}
	if err := errors.Join(h.LinkSetUp(lo), h.AddrAdd(eth, &netlink.Addr{IPNet: onBridge(n.IP())}), h.LinkSetUp(eth)); err != nil {
		return err
	}
	if err := addRoute(h, "0.0.0.0/0", layout.HostIP); err != nil {
		return err
	}
	for i := 1; i <= layout.MaxNodes; i++ {
		if other := layout.Dir("").Node(i); i != n.N {
			err = errors.Join(err, addRoute(h, other.PodCIDR(), other.IP()))
		}
	}
	return err
}

// router adds routes in one network namespace.
type router interface {
	RouteReplace(*netlink.Route) error
}

// netlinkHandle is the caller's own namespace.
type netlinkHandle struct{}

func (netlinkHandle) RouteReplace(r *netlink.Route) error { return netlink.RouteReplace(r) }

func addRoute(r router, to, via string) error {
	_, dst, err := net.ParseCIDR(to)
	if err != nil {
		return err
	}
	if err := r.RouteReplace(&netlink.Route{Dst: dst, Gw: net.ParseIP(via)}); err != nil {
		return fmt.Errorf("adding route to %s: %w", to, err)
	}
	return nil
}

// Links returns the names of the cluster's links that exist; with the bridge go the host's routes.
func Links() []string {
	var found []string
	for _, name := range linkNames() {
		if _, err := netlink.LinkByName(name); err == nil {
			found = append(found, name)
		}
	}
	return found
}

func linkNames() []string {
	var all []string
	for i := 1; i <= layout.MaxNodes; i++ {
		all = append(all, layout.Dir("").Node(i).Link())
	}
	return append(all, layout.Bridge)
}

// RemoveLink deletes a link; that it is gone already is success.
func RemoveLink(name string) error {
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	// A veth also goes with the other end's namespace, at any moment after the node's last process.
	if err != nil && !errors.As(err, new(netlink.LinkNotFoundError)) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("deleting link %s: %w", name, err)
	}
	return nil
}
