package network

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// recordTable is a routing table that no rule refers to: it keeps the routes of an uplink whose address the guest has.
const recordTable = 107

// handOver gives the guest the uplink's own address: the uplink loses it and joins the bridge, a stand-in takes the
// uplink's name, MAC and addresses, and the routes are kept in recordTable. Each step leaves enough behind to go on
// after a crash, and what the guest is to be told is read from there, never remembered.
func (p Port) handOver(h *netlink.Handle) (*guestv1.Interface, error) {
	uplink, err := p.original(h)
	if err != nil {
		return nil, err
	}
	mtu := uplink.Attrs().MTU
	bridge, err := ensure(h, &netlink.Bridge{LinkAttrs: attributes(p.Bridge, mtu)})
	if err != nil {
		return nil, err
	}
	// An address is asked for where it is: on the guest, and never at the stand-in by way of the bridge.
	if err := set("net/ipv4/conf/"+p.Bridge+"/arp_ignore", "1"); err != nil {
		return nil, err
	}
	if err := p.swap(h, uplink, bridge); err != nil {
		return nil, err
	}
	if err := p.enslave(h, bridge); err != nil {
		return nil, err
	}
	if err := p.plug(h, bridge, mtu); err != nil {
		return nil, err
	}
	return p.handedOver(h, bridge, mtu)
}

// original returns the uplink by whichever name it has now.
func (p Port) original(h *netlink.Handle) (netlink.Link, error) {
	for _, name := range []string{p.Original, p.Uplink} {
		link, err := find(h, name)
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", name, err)
		}
		if link != nil {
			return link, nil
		}
	}
	return nil, fmt.Errorf("the Pod has no interface %s: was its network attached?", p.Uplink)
}

// swap puts the stand-in in the uplink's place, where that hasn't been done.
func (p Port) swap(h *netlink.Handle, uplink, bridge netlink.Link) error {
	if uplink.Attrs().Name == p.Uplink {
		if err := recordRoutes(h, uplink, bridge); err != nil {
			return err
		}
		if err := p.standIn(h, uplink); err != nil {
			return err
		}
		if err := rename(h, uplink, p.Original); err != nil {
			return err
		}
	}
	stand, err := find(h, p.Stand)
	if err != nil || stand == nil { // it has its place already
		return err
	}
	return rename(h, stand, p.Uplink)
}

// standIn makes the stand-in anew from the uplink: one that is there may have been made in part only.
func (p Port) standIn(h *netlink.Handle, uplink netlink.Link) error {
	old, err := find(h, p.Stand)
	if err != nil {
		return err
	}
	if old != nil {
		if err := h.LinkDel(old); err != nil {
			return fmt.Errorf("removing a half-made %s: %w", p.Stand, err)
		}
	}
	// A bridge without ports: unlike a dummy, every kernel that can do the rest has it. It stays down.
	want := &netlink.Bridge{LinkAttrs: attributes(p.Stand, uplink.Attrs().MTU)}
	want.HardwareAddr = uplink.Attrs().HardwareAddr
	if err := h.LinkAdd(want); err != nil {
		return fmt.Errorf("adding %s: %w", p.Stand, err)
	}
	stand, err := h.LinkByName(p.Stand)
	if err != nil {
		return err
	}
	addresses, err := global(h, uplink, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if err := h.AddrReplace(stand, &netlink.Addr{IPNet: a.IPNet}); err != nil {
			return fmt.Errorf("adding %s to %s: %w", a.IPNet, p.Stand, err)
		}
	}
	return nil
}

// enslave makes the uplink a port of the bridge without address or MAC of the guest's.
func (p Port) enslave(h *netlink.Handle, bridge netlink.Link) error {
	uplink, err := h.LinkByName(p.Original)
	if err != nil {
		return err
	}
	addresses, err := h.AddrList(uplink, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if err := h.AddrDel(uplink, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("taking %s from %s: %w", a.IPNet, p.Original, err)
		}
	}
	stand, err := h.LinkByName(p.Uplink)
	if err != nil {
		return err
	}
	own := madeFrom(stand.Attrs().HardwareAddr)
	err = errors.Join(setMAC(h, uplink, own), setMAC(h, bridge, own), join(h, uplink, bridge), bringUp(h, uplink))
	if err != nil {
		return err
	}
	if err := h.LinkSetLearning(uplink, false); err != nil { // what is not the guest's goes there anyhow
		return fmt.Errorf("switching off learning on %s: %w", p.Original, err)
	}
	return nil
}

// madeFrom returns a local unicast address of another device than the given one, always the same.
func madeFrom(mac net.HardwareAddr) net.HardwareAddr {
	sum := sha256.Sum256(mac)
	made := net.HardwareAddr(sum[:6])
	made[0] = made[0]&^1 | 2
	return made
}

// handedOver reads back what the guest has to be told.
func (p Port) handedOver(h *netlink.Handle, bridge netlink.Link, mtu int) (*guestv1.Interface, error) {
	stand, err := h.LinkByName(p.Uplink)
	if err != nil {
		return nil, err
	}
	mac := p.MAC
	if mac == "" {
		mac = stand.Attrs().HardwareAddr.String()
	}
	fact := p.fact(mac, mtu)
	addresses, err := global(h, stand, netlink.FAMILY_V4)
	if err != nil || len(addresses) == 0 {
		return fact, err // without an address of the Pod's there is nothing to hand out
	}
	server := netip.PrefixFrom(netip.AddrFrom4([4]byte{169, 254, 75, byte(10 + p.Index%200)}), 32)
	if err := h.AddrReplace(bridge, &netlink.Addr{IPNet: ipNet(server)}); err != nil {
		return nil, fmt.Errorf("adding %s to %s: %w", server, p.Bridge, err)
	}
	fact.Lease = p.lease()
	fact.Lease.Address, fact.Lease.Server = addresses[0].IPNet.String(), server.Addr().String()
	return fact, recall(h, bridge, fact.Lease)
}

// recordRoutes copies an uplink's routes to where they outlive its address.
func recordRoutes(h *netlink.Handle, uplink, bridge netlink.Link) error {
	routes, err := h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{LinkIndex: uplink.Attrs().Index, Table: unix.RT_TABLE_MAIN}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("listing routes of %s: %w", uplink.Attrs().Name, err)
	}
	for _, r := range routes {
		if r.Protocol == unix.RTPROT_KERNEL { // follows from the address
			continue
		}
		kept := &netlink.Route{LinkIndex: bridge.Attrs().Index, Table: recordTable, Dst: r.Dst, Gw: r.Gw}
		if r.Gw == nil {
			kept.Scope = netlink.SCOPE_LINK
		} else {
			kept.SetFlag(netlink.FLAG_ONLINK) // the bridge has no address by which the gateway would be reached
		}
		if err := h.RouteReplace(kept); err != nil {
			return fmt.Errorf("recording route %s: %w", r, err)
		}
	}
	return nil
}

// recall puts the recorded routes into the lease.
func recall(h *netlink.Handle, bridge netlink.Link, to *guestv1.Lease) error {
	filter := &netlink.Route{LinkIndex: bridge.Attrs().Index, Table: recordTable}
	routes, err := h.RouteListFiltered(netlink.FAMILY_V4, filter, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
	if err != nil {
		return fmt.Errorf("reading the recorded routes: %w", err)
	}
	for _, r := range routes {
		switch {
		case r.Dst != nil && !r.Dst.IP.IsUnspecified():
			route := &guestv1.Route{Destination: r.Dst.String()}
			if r.Gw != nil {
				route.Gateway = r.Gw.String()
			}
			to.Routes = append(to.Routes, route)
		case r.Gw != nil:
			to.Gateway = r.Gw.String()
		}
	}
	slices.SortFunc(to.Routes, func(a, b *guestv1.Route) int { return strings.Compare(a.GetDestination(), b.GetDestination()) })
	return nil
}

// global returns the addresses by which others reach a device.
func global(h *netlink.Handle, link netlink.Link, family int) ([]netlink.Addr, error) {
	list, err := h.AddrList(link, family)
	if err != nil {
		return nil, fmt.Errorf("listing addresses of %s: %w", link.Attrs().Name, err)
	}
	return slices.DeleteFunc(list, func(a netlink.Addr) bool { return !a.IP.IsGlobalUnicast() }), nil
}

// rename takes a device down for it, as older kernels ask. Its addresses of IPv4 stay.
func rename(h *netlink.Handle, link netlink.Link, to string) error {
	if err := h.LinkSetDown(link); err != nil {
		return fmt.Errorf("taking %s down: %w", link.Attrs().Name, err)
	}
	if err := h.LinkSetName(link, to); err != nil {
		return fmt.Errorf("renaming %s to %s: %w", link.Attrs().Name, to, err)
	}
	return nil
}
