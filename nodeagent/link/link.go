// Package link is the gRPC connection from the node agent to the launcher of one VM, and what the launchers of this
// node say of their guests.
package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// Limits of a call. A launcher stands next to a hostile guest: it is neither waited for nor listened to without bound.
const (
	// maxAnswer is in bytes; a state with a hundred disks takes less than 10 KiB.
	maxAnswer = 256 << 10
	// maxRequest is in bytes: a VMI of up to 1 MiB and libvirt's capability cache.
	maxRequest = 8 << 20
	// syncTimeout leaves time for libvirt to start and QEMU to load its firmware on a busy node.
	syncTimeout = 2 * time.Minute
	actTimeout  = 10 * time.Second
)

// Dialer connects to a launcher's socket. It is asked again after each loss.
type Dialer func(ctx context.Context) (net.Conn, error)

// Link is a connection to one launcher.
type Link struct {
	conn     *grpc.ClientConn
	guest    guestv1.GuestClient
	protocol uint32 // the newest that is spoken
}

// Open returns a link that connects when it is first used.
func Open(dial Dialer) (*Link, error) {
	retry := backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: 2 * time.Second}
	conn, err := grpc.NewClient("passthrough:launcher",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx) }),
		// The socket lies in the Pod's own directory and the dialer knows who listens.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: retry, MinConnectTimeout: 5 * time.Second}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer), grpc.MaxCallSendMsgSize(maxRequest)),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, fmt.Errorf("opening a link: %w", err)
	}
	return &Link{conn, guestv1.NewGuestClient(conn), guestv1.Protocol}, nil
}

// Close hangs up. The guest goes on.
func (l *Link) Close() error { return l.conn.Close() }

// Sync asks the launcher to make the guest what req says and returns its state then. The protocol version is filled
// in: the launcher answers with the lower of its own and ours.
func (l *Link) Sync(ctx context.Context, req *guestv1.SyncVirtualMachineRequest) (*guestv1.State, error) {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	req.Protocol = l.protocol
	resp, err := l.guest.SyncVirtualMachine(ctx, req)
	if err != nil {
		return nil, heard(err)
	}
	if p := resp.GetProtocol(); p < guestv1.OldestProtocol || p > l.protocol {
		return nil, fmt.Errorf("launcher chose protocol %d, want %d to %d", p, guestv1.OldestProtocol, l.protocol)
	}
	return resp.GetState(), nil
}

// Shutdown asks the guest to shut down; it may be deaf. It tells whether the guest had been asked before.
func (l *Link) Shutdown(ctx context.Context) (again bool, err error) {
	said, err := l.act(ctx, &guestv1.ActRequest{Act: &guestv1.ActRequest_Shutdown{Shutdown: &guestv1.Shutdown{}}})
	return said.GetAgain(), err
}

// Pause stops the guest's CPUs.
func (l *Link) Pause(ctx context.Context) error {
	_, err := l.act(ctx, &guestv1.ActRequest{Act: &guestv1.ActRequest_Pause{Pause: &guestv1.Pause{}}})
	return err
}

// Unpause lets a paused guest go on.
func (l *Link) Unpause(ctx context.Context) error {
	_, err := l.act(ctx, &guestv1.ActRequest{Act: &guestv1.ActRequest_Unpause{Unpause: &guestv1.Unpause{}}})
	return err
}

// DumpMemory has the guest's memory written to a new file.
func (l *Link) DumpMemory(ctx context.Context, d *guestv1.DumpMemory) error {
	_, err := l.act(ctx, &guestv1.ActRequest{Act: &guestv1.ActRequest_DumpMemory{DumpMemory: d}})
	return err
}

// StopDump ends the dump that runs.
func (l *Link) StopDump(ctx context.Context) error {
	_, err := l.act(ctx, &guestv1.ActRequest{Act: &guestv1.ActRequest_StopDump{StopDump: &guestv1.StopDump{}}})
	return err
}

// Kill ends QEMU at once.
func (l *Link) Kill(ctx context.Context) error {
	_, err := l.act(ctx, &guestv1.ActRequest{Act: &guestv1.ActRequest_Kill{Kill: &guestv1.Kill{}}})
	return err
}

func (l *Link) act(ctx context.Context, req *guestv1.ActRequest) (*guestv1.ActResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, actTimeout)
	defer cancel()
	req.Protocol = l.protocol
	said, err := l.guest.Act(ctx, req)
	return said, heard(err)
}

// ErrUnheard is in the error of a call that no launcher has answered: it has ended, isn't there yet, or the link was
// closed. Watch tells which, and what has become of the guest.
var ErrUnheard = errors.New("the launcher did not answer")

// Reason is the text of an error of a call, without gRPC's numbers.
func Reason(err error) string { return status.Convert(err).Message() }

// heard marks an error that is not the launcher's word: its own never have these codes.
func heard(err error) error {
	switch status.Code(err) {
	case codes.Unavailable, codes.Canceled:
		return fmt.Errorf("%w: %w", ErrUnheard, err)
	}
	return err
}

// watch calls report for each state that the launcher sends, the first of them at once, and returns when the launcher
// hangs up, or with ctx.
func (l *Link) watch(ctx context.Context, report func(*guestv1.State)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := l.guest.Watch(ctx, &guestv1.WatchRequest{Protocol: l.protocol})
	if err != nil {
		return err
	}
	for {
		state, err := stream.Recv()
		if err != nil {
			return err
		}
		report(state)
	}
}
