package network

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// bridgeMAC is the same in every Pod, so that a guest that has moved finds its gateway where it was.
var bridgeMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 0}

// addressInUse skips the search for another holder of an IPv6 address.
const addressInUse = unix.IFA_F_NODAD

// plug makes the tap device that is the guest's cable and puts it into the bridge.
func (p Port) plug(h *netlink.Handle, bridge netlink.Link, mtu int) error {
	// QEMU has no capability, so the device is made for it and given to its user.
	want := &netlink.Tuntap{
		LinkAttrs: attributes(p.Tap, mtu), Mode: netlink.TUNTAP_MODE_TAP, Flags: netlink.TUNTAP_NO_PI | netlink.TUNTAP_VNET_HDR,
		Owner: guestv1.User, Group: guestv1.User,
	}
	if p.Queues > 1 { // each file that QEMU opens is then a queue; a single one is made as QEMU opens a single one
		want.Flags |= unix.IFF_MULTI_QUEUE
		want.Queues = 1
	}
	tap, err := ensure(h, want)
	if err != nil {
		return err
	}
	return join(h, tap, bridge)
}

func join(h *netlink.Handle, link, bridge netlink.Link) error {
	if link.Attrs().MasterIndex == bridge.Attrs().Index {
		return nil
	}
	if err := h.LinkSetMaster(link, bridge); err != nil {
		return fmt.Errorf("joining %s to %s: %w", link.Attrs().Name, bridge.Attrs().Name, err)
	}
	return nil
}

func setMAC(h *netlink.Handle, link netlink.Link, mac net.HardwareAddr) error {
	if bytes.Equal(link.Attrs().HardwareAddr, mac) {
		return nil
	}
	if err := h.LinkSetHardwareAddr(link, mac); err != nil {
		return fmt.Errorf("setting MAC of %s: %w", link.Attrs().Name, err)
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
	have, err := find(h, name)
	if err == nil && have == nil {
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
	return have, bringUp(h, have)
}

func bringUp(h *netlink.Handle, link netlink.Link) error {
	if link.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	if err := h.LinkSetUp(link); err != nil {
		return fmt.Errorf("raising %s: %w", link.Attrs().Name, err)
	}
	return nil
}

// find returns a device, or nil where there is none of that name.
func find(h *netlink.Handle, name string) (netlink.Link, error) {
	link, err := h.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	return link, err
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

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
