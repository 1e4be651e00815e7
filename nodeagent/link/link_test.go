package link

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
)

// launcherd is a launcher whose guest is a variable.
type launcherd struct {
	guestv1.UnimplementedGuestServer
	protocol uint32
	mu       sync.Mutex
	acts     []string
	states   chan *guestv1.State
}

func (g *launcherd) SyncVirtualMachine(_ context.Context, r *guestv1.SyncVirtualMachineRequest) (*guestv1.SyncVirtualMachineResponse, error) {
	if r.GetProtocol() != guestv1.Protocol {
		return nil, status.Error(codes.FailedPrecondition, "protocol")
	}
	return &guestv1.SyncVirtualMachineResponse{Protocol: g.protocol, State: &guestv1.State{Phase: guestv1.State_PHASE_RUNNING}}, nil
}

func (g *launcherd) Watch(_ *guestv1.WatchRequest, s grpc.ServerStreamingServer[guestv1.State]) error {
	for {
		select {
		case st, ok := <-g.states:
			if !ok {
				return errors.New("launcher ends")
			}
			if err := s.Send(st); err != nil {
				return err
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func (g *launcherd) Act(_ context.Context, r *guestv1.ActRequest) (*guestv1.ActResponse, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch r.GetAct().(type) {
	case *guestv1.ActRequest_Shutdown:
		g.acts = append(g.acts, "shutdown")
		return &guestv1.ActResponse{Again: len(g.acts) > 1}, nil
	case *guestv1.ActRequest_Kill:
		g.acts = append(g.acts, "kill")
	}
	return &guestv1.ActResponse{}, nil
}

func serve(t *testing.T, path string, g *launcherd) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	guestv1.RegisterGuestServer(s, g)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return s.Stop
}

func dialer(path string) Dialer {
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
}

func TestALinkSpeaksToItsLauncher(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	g := &launcherd{protocol: guestv1.Protocol}
	serve(t, path, g)
	l, err := Open(dialer(path))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	state, err := l.Sync(t.Context(), &guestv1.SyncVirtualMachineRequest{})
	if err != nil || state.GetPhase() != guestv1.State_PHASE_RUNNING {
		t.Errorf("got %v, %v", state, err)
	}
	for _, want := range []bool{false, true} {
		if again, err := l.Shutdown(t.Context()); err != nil || again != want {
			t.Errorf("asked to shut down before: %t, %v; want %t", again, err, want)
		}
	}
	if err := l.Kill(t.Context()); err != nil || len(g.acts) != 3 || g.acts[2] != "kill" {
		t.Errorf("acts: %v, %v", g.acts, err)
	}
}

func TestAProtocolNobodySpeaksIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	serve(t, path, &launcherd{protocol: guestv1.Protocol + 1})
	l, err := Open(dialer(path))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Sync(t.Context(), &guestv1.SyncVirtualMachineRequest{}); err == nil {
		t.Error("a newer protocol was accepted")
	}
}

const pod = types.UID("pod")

var web = types.NamespacedName{Namespace: "ns", Name: "web"}

// await returns what the launcher was seen to say once ok holds for it.
func await(t *testing.T, l *Launchers, changed <-chan types.NamespacedName, ok func(Seen) bool) Seen {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		if _, seen := l.Link(pod); ok(seen) {
			return seen
		}
		select {
		case <-changed:
		case <-deadline:
			_, seen := l.Link(pod)
			t.Fatalf("still %+v", seen)
		}
	}
}

func TestALaunchersStateSurvivesItsLossAndIsToldAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	changed := make(chan types.NamespacedName, 100)
	l := &Launchers{
		Dial:    func(ctx context.Context, _ types.UID) (net.Conn, error) { return dialer(path)(ctx) },
		Changed: func(vmi types.NamespacedName) { changed <- vmi },
	}
	defer l.Close()
	if err := l.Keep(web, pod); err != nil { // before the launcher listens
		t.Fatal(err)
	}
	if _, seen := l.Link(pod); seen.State != nil || seen.Since.IsZero() {
		t.Errorf("before any contact: %+v", seen)
	}
	g := &launcherd{states: make(chan *guestv1.State)}
	stop := serve(t, path, g)
	g.states <- &guestv1.State{Phase: guestv1.State_PHASE_NOT_STARTED}
	g.states <- &guestv1.State{Phase: guestv1.State_PHASE_RUNNING}
	await(t, l, changed, func(s Seen) bool { return s.State.GetPhase() == guestv1.State_PHASE_RUNNING && s.Since.IsZero() })
	stop()
	lost := await(t, l, changed, func(s Seen) bool { return !s.Since.IsZero() })
	if lost.State.GetPhase() != guestv1.State_PHASE_RUNNING || lost.Err == nil {
		t.Errorf("after the loss: %+v", lost)
	}
	again := &launcherd{states: make(chan *guestv1.State)}
	serve(t, path, again)
	again.states <- &guestv1.State{Phase: guestv1.State_PHASE_RUNNING}
	await(t, l, changed, func(s Seen) bool { return s.Since.IsZero() })
}

func TestOnlyWantedLaunchersAreKept(t *testing.T) {
	l := &Launchers{
		Dial:    func(context.Context, types.UID) (net.Conn, error) { return nil, errors.New("nobody there") },
		Changed: func(types.NamespacedName) {},
	}
	defer l.Close()
	other := types.NamespacedName{Namespace: "ns", Name: "other"}
	if err := errors.Join(l.Keep(web, "a", "b"), l.Keep(other, "c"), l.Keep(web, "b")); err != nil {
		t.Fatal(err)
	}
	for pod, want := range map[types.UID]bool{"a": false, "b": true, "c": true} {
		if link, _ := l.Link(pod); (link != nil) != want {
			t.Errorf("Pod %s is kept: %v", pod, link != nil)
		}
	}
}
