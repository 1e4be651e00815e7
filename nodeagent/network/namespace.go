package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/machine/names"
)

// ErrNotThePods is returned, and nothing done, where a network namespace is not proven to be the Pod's.
var ErrNotThePods = errors.New("not the Pod's network namespace")

// inside runs do on a thread in the namespace, after proof that it is neither this process's nor the node's first
// process's, and then that the uplink in it has one of the Pod's addresses: a container's first process is in the
// Pod's cgroup for a moment before it is in the Pod's namespace, and the node's own has another address.
func inside(ns *os.File, addresses []netip.Addr, do func(*netlink.Handle) error) error {
	if err := proveForeign(ns); err != nil {
		return err
	}
	return onThread(ns, func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("opening netlink: %w", err)
		}
		defer h.Close()
		if err := proveAddress(h, addresses); err != nil {
			return err
		}
		return do(h)
	})
}

func proveForeign(ns *os.File) error {
	// The thread's, not the process's: another thread, also the first one, may be in some Pod's at the moment.
	if same, err := sameFile(ns, "/proc/thread-self/ns/net"); err != nil || same {
		return fmt.Errorf("it is the node agent's own: %w", errors.Join(err, ErrNotThePods))
	}
	same, err := sameFile(ns, "/proc/1/ns/net")
	if errors.Is(err, fs.ErrPermission) { // where process 1 has rights that no container has; the address decides alone
		return nil
	}
	if err != nil || same {
		return fmt.Errorf("it is that of process 1: %w", errors.Join(err, ErrNotThePods))
	}
	return nil
}

func proveAddress(h *netlink.Handle, want []netip.Addr) error {
	link, err := h.LinkByName(Uplink)
	if err != nil { // between two steps of handOver
		link, err = h.LinkByName(names.WiringOf(Uplink).Stand)
	}
	if err != nil {
		return fmt.Errorf("no %s: %w", Uplink, errors.Join(err, ErrNotThePods))
	}
	have, err := h.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("listing addresses of %s: %w", Uplink, err)
	}
	for _, a := range have {
		for _, w := range want {
			if got, ok := netip.AddrFromSlice(a.IP); ok && got.Unmap() == w {
				return nil
			}
		}
	}
	return fmt.Errorf("%s has %v, the Pod has %v: %w", Uplink, have, want, ErrNotThePods)
}

// onThread runs do on a thread of its own in the namespace. A thread that can't be brought back is thrown away.
func onThread(ns *os.File, do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		own, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("opening own network namespace: %w", err)
			return
		}
		defer own.Close()
		// Without this, links and rules would be made in the node agent's own namespace.
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			done <- fmt.Errorf("entering network namespace: %w", err)
			return
		}
		err = do()
		if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

func sameFile(f *os.File, path string) (bool, error) {
	a, err := f.Stat()
	if err != nil {
		return false, err
	}
	b, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return os.SameFile(a, b), nil
}
