package network

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// bridgeMAC is the same in every Pod, so that a guest that has moved finds its gateway where it was.
var bridgeMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 0}

// Prepare makes the Pod's network namespace ready for the guest and returns what the launcher has to know, one for each
// port. addresses are the Pod's. It may be repeated at any time: a running guest keeps its connections. An error wraps
// ErrNotThePods where ns is not proven to be the Pod's; nothing was changed then.
func Prepare(ns *os.File, addresses []netip.Addr, ports []Port) ([]*guestv1.Interface, error) {
	if len(ports) == 0 {
		return nil, nil
	}
	var facts []*guestv1.Interface
	err := inside(ns, addresses, func(h *netlink.Handle) error {
		uplink, err := h.LinkByName(Uplink)
		if err != nil {
			return err
		}
		for _, p := range ports {
			if err := p.connect(h, uplink.Attrs().MTU); err != nil {
				return fmt.Errorf("connecting interface %q: %w", p.Interface, err)
			}
			facts = append(facts, p.guest(uint32(uplink.Attrs().MTU)))
		}
		// Without forwarding the Pod drops what it receives for the guest. It is the namespace's own switch.
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
			return fmt.Errorf("allowing forwarding: %w", err)
		}
		return translate(int(ns.Fd()), ports)
	})
	if err != nil {
		return nil, err
	}
	return facts, nil
}

// connect makes the bridge that is the guest's gateway and the tap device that is the guest's cable.
func (p Port) connect(h *netlink.Handle, mtu int) error {
	bridge, err := ensure(h, &netlink.Bridge{LinkAttrs: attributes(p.Bridge, mtu)})
	if err != nil {
		return err
	}
	if !bytes.Equal(bridge.Attrs().HardwareAddr, bridgeMAC) {
		if err := h.LinkSetHardwareAddr(bridge, bridgeMAC); err != nil {
			return fmt.Errorf("setting MAC of %s: %w", p.Bridge, err)
		}
	}
	gateway := &netlink.Addr{IPNet: &net.IPNet{IP: p.Gateway.Addr().AsSlice(), Mask: net.CIDRMask(p.Gateway.Bits(), 32)}}
	if err := h.AddrReplace(bridge, gateway); err != nil {
		return fmt.Errorf("adding %s to %s: %w", p.Gateway, p.Bridge, err)
	}
	// QEMU has no capability, so the device is made for it and given to its user.
	tap, err := ensure(h, &netlink.Tuntap{
		LinkAttrs: attributes(p.Tap, mtu), Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR,
		Owner: guestv1.User, Group: guestv1.User,
	})
	if err != nil {
		return err
	}
	if tap.Attrs().MasterIndex != bridge.Attrs().Index {
		if err := h.LinkSetMaster(tap, bridge); err != nil {
			return fmt.Errorf("joining %s to %s: %w", p.Tap, p.Bridge, err)
		}
	}
	return nil
}

func attributes(name string, mtu int) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name, a.MTU = name, mtu
	return a
}

// ensure returns the device as the kernel has it, made where it was missing, with the MTU that was asked for, and up.
func ensure(h *netlink.Handle, want netlink.Link) (netlink.Link, error) {
	name, mtu := want.Attrs().Name, want.Attrs().MTU
	have, err := h.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		if err := add(h, want); err != nil {
			return nil, fmt.Errorf("adding %s: %w", name, err)
		}
		have, err = h.LinkByName(name)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for %s: %w", name, err)
	}
	if have.Type() != want.Type() {
		return nil, fmt.Errorf("%s is a %s, want a %s", name, have.Type(), want.Type())
	}
	if have.Attrs().MTU != mtu {
		if err := h.LinkSetMTU(have, mtu); err != nil {
			return nil, fmt.Errorf("setting MTU of %s to %d: %w", name, mtu, err)
		}
	}
	if have.Attrs().Flags&net.FlagUp == 0 {
		if err := h.LinkSetUp(have); err != nil {
			return nil, fmt.Errorf("raising %s: %w", name, err)
		}
	}
	return have, nil
}

func add(h *netlink.Handle, want netlink.Link) error {
	err := h.LinkAdd(want)
	if tap, ok := want.(*netlink.Tuntap); ok {
		for _, f := range tap.Fds { // the device outlives its file; QEMU opens it anew
			f.Close()
		}
	}
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return err
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
