package nodeagent

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// launcher is a launcher whose guest does at once what it is told.
type launcher struct {
	guestv1.UnimplementedGuestServer
	listener *bufconn.Listener

	mu     sync.Mutex
	state  *guestv1.State
	moved  chan struct{}
	calls  []string
	synced *guestv1.SyncVirtualMachineRequest
}

func newLauncher(t *testing.T) *launcher {
	l := &launcher{listener: bufconn.Listen(1 << 20), state: &guestv1.State{Phase: guestv1.State_PHASE_NOT_STARTED}, moved: make(chan struct{})}
	s := grpc.NewServer()
	guestv1.RegisterGuestServer(s, l)
	go s.Serve(l.listener)
	t.Cleanup(s.Stop)
	return l
}

func (l *launcher) dial(ctx context.Context) (net.Conn, error) { return l.listener.DialContext(ctx) }

// become moves the guest and tells every watcher.
func (l *launcher) become(call string, state *guestv1.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if call != "" {
		l.calls = append(l.calls, call)
	}
	l.state = state
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *launcher) now() (*guestv1.State, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return proto.CloneOf(l.state), l.moved
}

func (l *launcher) called() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.calls...)
}

func (l *launcher) SyncVirtualMachine(_ context.Context, r *guestv1.SyncVirtualMachineRequest) (*guestv1.SyncVirtualMachineResponse, error) {
	l.mu.Lock()
	l.synced = r
	l.mu.Unlock()
	l.become("sync", &guestv1.State{Phase: guestv1.State_PHASE_RUNNING, Machine: "pc-q35-10.0"})
	return &guestv1.SyncVirtualMachineResponse{Protocol: guestv1.Protocol}, nil
}

func (l *launcher) Watch(_ *guestv1.WatchRequest, s grpc.ServerStreamingServer[guestv1.State]) error {
	for {
		state, moved := l.now()
		if err := s.Send(state); err != nil {
			return err
		}
		select {
		case <-moved:
		case <-s.Context().Done():
			return nil
		}
	}
}

func (l *launcher) Act(_ context.Context, r *guestv1.ActRequest) (*guestv1.ActResponse, error) {
	switch r.GetAct().(type) {
	case *guestv1.ActRequest_Shutdown:
		l.become("shutdown", &guestv1.State{Phase: guestv1.State_PHASE_STOPPED, StopReason: guestv1.State_STOP_REASON_SHUTDOWN})
	case *guestv1.ActRequest_Kill:
		l.become("kill", &guestv1.State{Phase: guestv1.State_PHASE_STOPPED, StopReason: guestv1.State_STOP_REASON_DESTROYED})
	}
	return &guestv1.ActResponse{}, nil
}

// noNetwork is a node whose Pods need no preparation, or can't be prepared.
type noNetwork struct{ err error }

func (noNetwork) Advertise(context.Context, *k8sv1.Pod, *v1.VirtualMachineInstance) error { return nil }
func (noNetwork) Advertised(types.UID) bool                                               { return true }
func (noNetwork) Keep(types.NamespacedName, ...types.UID)                                 {}

func (n noNetwork) Prepare(context.Context, *k8sv1.Pod, *v1.VirtualMachineInstance) ([]*guestv1.Interface, error) {
	return nil, n.err
}
