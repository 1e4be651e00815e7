package network

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/names"
)

// Prepare makes the Pod's network namespace ready for the guest and returns what the launcher has to know, one for each
// port. addresses are the Pod's. It may be repeated at any time: a running guest keeps its connections. An error wraps
// ErrNotThePods where ns is not proven to be the Pod's; nothing was changed then.
func Prepare(ns *os.File, addresses []netip.Addr, ports []Port) ([]*guestv1.Interface, error) {
	if len(ports) == 0 {
		return nil, nil
	}
	var facts []*guestv1.Interface
	err := inside(ns, addresses, func(h *netlink.Handle) error {
		var behind []translated
		for _, p := range ports {
			fact, families, err := p.connect(h)
			if err != nil {
				return fmt.Errorf("connecting interface %q: %w", p.Interface, err)
			}
			facts = append(facts, fact)
			if p.Masquerade != nil {
				behind = append(behind, translated{p, families})
			}
		}
		if len(behind) == 0 {
			return nil
		}
		return translate(int(ns.Fd()), behind)
	})
	if err != nil {
		return nil, err
	}
	return facts, nil
}

// connect makes the port's devices and returns what the launcher is told, and the families that are translated.
func (p Port) connect(h *netlink.Handle) (*guestv1.Interface, families, error) {
	if p.Masquerade == nil {
		fact, err := p.handOver(h)
		return fact, families{}, err
	}
	return p.hide(h)
}

// hide puts the guest on a network of its own, whose gateway is the bridge.
func (p Port) hide(h *netlink.Handle) (*guestv1.Interface, families, error) {
	uplink, err := h.LinkByName(p.Uplink)
	if err != nil {
		return nil, families{}, err
	}
	used, err := familiesOf(h, uplink)
	if err != nil {
		return nil, families{}, err
	}
	mtu := uplink.Attrs().MTU
	bridge, err := ensure(h, &netlink.Bridge{LinkAttrs: attributes(p.Bridge, mtu)})
	if err != nil {
		return nil, families{}, err
	}
	if err := setMAC(h, bridge, bridgeMAC); err != nil {
		return nil, families{}, err
	}
	if err := p.address(h, bridge, used); err != nil {
		return nil, families{}, err
	}
	if err := p.plug(h, bridge, mtu); err != nil {
		return nil, families{}, err
	}
	return p.hidden(used, mtu), used, nil
}

// address gives the bridge the guest's gateways and has the namespace forward between it and the uplink.
func (p Port) address(h *netlink.Handle, bridge netlink.Link, used families) error {
	if used.v4 {
		if err := patient("net/ipv4/neigh/" + p.Bridge); err != nil {
			return err
		}
		if err := h.AddrReplace(bridge, &netlink.Addr{IPNet: ipNet(p.Masquerade.V4.Gateway)}); err != nil {
			return fmt.Errorf("adding %s to %s: %w", p.Masquerade.V4.Gateway, p.Bridge, err)
		}
		// Without forwarding the Pod drops what it receives for the guest; without routes to loopback addresses what
		// comes from the Pod's own 127.0.0.1, a port forward of kubectl's, gets no answer. Both are the namespace's own.
		if err := set("net/ipv4/ip_forward", "1", "net/ipv4/conf/"+p.Bridge+"/route_localnet", "1"); err != nil {
			return err
		}
	}
	if !used.v6 {
		return nil
	}
	if err := set("net/ipv6/conf/"+p.Bridge+"/disable_ipv6", "0", "net/ipv6/conf/all/forwarding", "1"); err != nil {
		return err
	}
	if err := patient("net/ipv6/neigh/" + p.Bridge); err != nil {
		return err
	}
	for _, own := range []netip.Prefix{p.Masquerade.V6.Gateway, routerAddress} {
		// In use at once, though the guest's cable isn't plugged in: nobody else is on the link.
		if err := h.AddrReplace(bridge, &netlink.Addr{IPNet: ipNet(own), Flags: addressInUse}); err != nil {
			return fmt.Errorf("adding %s to %s: %w", own, p.Bridge, err)
		}
	}
	return nil
}

// neighbourTries is how often, once a second, the Pod asks the guest for its link address before it tells clients that
// there is no route to the host.
const neighbourTries = "60"

// patient has the namespace wait for a guest that is slow to answer. The kernel's three seconds are for a network: a guest
// that is busy, paused or not yet sure that its address is its own would be reported as gone.
func patient(neighbours string) error {
	return set(neighbours+"/mcast_solicit", neighbourTries, neighbours+"/ucast_solicit", neighbourTries)
}

// hidden is what the launcher is told. DNS servers are left out: it hands out its own Pod's.
func (p Port) hidden(used families, mtu int) *guestv1.Interface {
	fact := p.fact(p.MAC, mtu)
	if used.v4 {
		fact.Lease = p.lease()
		fact.Lease.Address, fact.Lease.Gateway = p.Masquerade.V4.Guest.String(), p.Masquerade.V4.Gateway.Addr().String()
		fact.Lease.AnyClient = true
	}
	if used.v6 {
		fact.Lease6 = &guestv1.Lease6{Bridge: p.Bridge, Address: p.Masquerade.V6.Guest.Addr().String(), ServerMac: bridgeMAC.String()}
	}
	return fact
}

func (p Port) fact(mac string, mtu int) *guestv1.Interface {
	return &guestv1.Interface{Name: p.Interface, Tap: p.Tap, Mac: mac, Mtu: uint32(mtu), Queues: uint32(p.Queues)}
}

func (p Port) lease() *guestv1.Lease {
	return &guestv1.Lease{Bridge: p.Bridge, Hostname: p.Hostname, Subdomain: p.Subdomain, Options: p.DHCP}
}

// families are those of which an uplink has an address that others reach.
type families struct {
	v4, v6 bool
	// own is the first such address of IPv4.
	own netip.Addr
}

func familiesOf(h *netlink.Handle, uplink netlink.Link) (families, error) {
	list, err := h.AddrList(uplink, netlink.FAMILY_ALL)
	if err != nil {
		return families{}, fmt.Errorf("listing addresses of %s: %w", uplink.Attrs().Name, err)
	}
	var found families
	for _, a := range list {
		if !a.IP.IsGlobalUnicast() {
			continue
		}
		four := a.IP.To4() != nil
		if four && !found.v4 {
			found.own, _ = netip.AddrFromSlice(a.IP.To4()) // four bytes are an address
		}
		found.v4, found.v6 = found.v4 || four, found.v6 || !four
	}
	return found, nil
}

// set writes pairs of a file under /proc/sys and a value. Those under net are the thread's network namespace's own.
func set(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if err := os.WriteFile("/proc/sys/"+pairs[i], []byte(pairs[i+1]), 0); err != nil {
			return fmt.Errorf("setting %s to %s: %w", pairs[i], pairs[i+1], err)
		}
	}
	return nil
}

// Addresses parses a Pod's addresses; one that is none is left out.
func Addresses(ips []string) []netip.Addr {
	var found []netip.Addr
	for _, ip := range ips {
		if a, err := netip.ParseAddr(ip); err == nil {
			found = append(found, a)
		}
	}
	return found
}

// Uplink is the interface by which a Pod reaches its network.
const Uplink = names.PodUplink
