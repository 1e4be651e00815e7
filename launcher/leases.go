package launcher

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/dhcp"
	"virtstack.io/virtstack/launcher/domain"
)

// interfaces returns the facts of the guest's interfaces and sees to it that their leases are handed out for as long
// as the launcher lives.
func (p *preparer) interfaces(list []*guestv1.Interface) (map[string]domain.Interface, error) {
	resolver, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	facts := map[string]domain.Interface{}
	for _, i := range list {
		facts[i.GetName()] = domain.Interface{Tap: i.GetTap(), MAC: i.GetMac(), MTU: uint(i.GetMtu()), Queues: uint(i.GetQueues())}
		if err := errors.Join(p.lease4(i, resolver), p.lease6(i, resolver)); err != nil {
			return nil, fmt.Errorf("preparing interface %q: %w", i.GetName(), err)
		}
	}
	return facts, nil
}

func (p *preparer) lease4(i *guestv1.Interface, resolver []byte) error {
	if i.GetLease() == nil {
		return nil
	}
	bridge := i.GetLease().GetBridge()
	return p.serve("DHCP on "+bridge, func() (server, error) {
		lease, err := dhcp.From(i, resolver)
		if err != nil {
			return nil, err
		}
		return dhcp.Listen(bridge, lease)
	})
}

func (p *preparer) lease6(i *guestv1.Interface, resolver []byte) error {
	if i.GetLease6() == nil {
		return nil
	}
	bridge := i.GetLease6().GetBridge()
	return p.serve("DHCPv6 on "+bridge, func() (server, error) {
		lease, err := dhcp.From6(i, resolver)
		if err != nil {
			return nil, err
		}
		return dhcp.Listen6(bridge, lease)
	})
}

// server hands out one lease until ctx ends.
type server interface {
	Serve(ctx context.Context) error
}

// serve opens a server, unless what it serves is served already.
func (p *preparer) serve(what string, open func() (server, error)) error {
	if p.serving[what] {
		return nil
	}
	s, err := open()
	if err != nil {
		return err
	}
	if p.serving == nil {
		p.serving = map[string]bool{}
	}
	p.serving[what] = true
	go func() {
		if err := s.Serve(p.ctx); err != nil {
			slog.Error("the guest gets no address", "error", err)
		}
	}()
	return nil
}
