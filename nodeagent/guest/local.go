package guest

import (
	"context"
	"net"

	"k8s.io/apimachinery/pkg/types"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/nodeagent/podfs"
)

// Local reaches launchers on this node.
type Local struct{ Pods *podfs.Pods }

// Dial connects to one of the sockets of a Pod's launcher, after proof that it is that Pod's.
func (l Local) Dial(ctx context.Context, pod types.UID, socket string) (net.Conn, error) {
	conn, process, err := l.reach(ctx, pod, socket)
	if err != nil {
		return nil, err
	}
	process.Close()
	return conn, nil
}

// LockMemory lets the processes of a Pod's launcher lock that many bytes of memory.
func (l Local) LockMemory(ctx context.Context, pod types.UID, bytes uint64) error {
	conn, process, err := l.reach(ctx, pod, guestv1.GuestSocket)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer process.Close()
	return process.LockMemory(pod, bytes)
}

func (l Local) reach(ctx context.Context, pod types.UID, socket string) (*net.UnixConn, *podfs.Process, error) {
	run, err := l.Pods.EmptyDir(pod, guestv1.RunVolume)
	if err != nil {
		return nil, nil, err
	}
	defer run.Close()
	conn, err := run.Dial(ctx, socket)
	if err != nil {
		return nil, nil, err
	}
	process, err := podfs.Peer(conn, pod, guestv1.User)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, process, nil
}
