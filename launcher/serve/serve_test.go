package serve_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/driver/fake"
	"virtstack.io/virtstack/launcher/guest"
	"virtstack.io/virtstack/launcher/serve"
)

const xml = `<domain type="qemu"><os><type machine="q35">hvm</type></os><devices><disk type="block" device="disk"><target dev="vda"/></disk></devices></domain>`

func prepare(_ context.Context, vmi *v1.VirtualMachineInstance, _ *guestv1.SyncVirtualMachineRequest) (serve.Prepared, error) {
	if vmi.Name == "bad" {
		return serve.Prepared{}, serve.Refuse(errors.New("spec.domain.cpu.cores: Invalid value: 0: must be at least 1"))
	}
	if vmi.Name == "unlucky" {
		return serve.Prepared{}, errors.New("no space left, \xff" + strings.Repeat("x", 2*guest.Longest))
	}
	return serve.Prepared{XML: xml, Targets: map[string]string{"root": "vda"}}, nil
}

func launcher(t *testing.T) (*fake.Driver, guestv1.GuestClient) {
	t.Helper()
	d := fake.Open()
	return d, dial(t, d)
}

// dial serves the guest of a driver and connects to it.
func dial(t *testing.T, d driver.Driver) guestv1.GuestClient {
	t.Helper()
	g := guest.New(d, time.Minute)
	go g.Loop(t.Context())
	socket := filepath.Join(t.TempDir(), "guest.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = serve.New(g, prepare, dumps).Serve(t.Context(), l) }()
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return guestv1.NewGuestClient(conn)
}

func TestAWatcherSeesTheWholeLife(t *testing.T) {
	d, c := launcher(t)
	w, err := c.Watch(t.Context(), &guestv1.WatchRequest{Protocol: 1})
	if err != nil {
		t.Fatal(err)
	}
	sees := func(want guestv1.State_Phase) *guestv1.State {
		t.Helper()
		for {
			s, err := w.Recv()
			if err != nil {
				t.Fatalf("waiting for %s: %v", want, err)
			}
			if s.Phase == want {
				return s
			}
		}
	}
	vmi := []byte(`{"metadata":{"name":"web"},"spec":{"domain":{"devices":{"disks":[{"name":"root"}]}}}}`)
	resp, err := c.SyncVirtualMachine(t.Context(), &guestv1.SyncVirtualMachineRequest{Protocol: 7, Vmi: vmi})
	if err != nil || resp.Protocol != guestv1.Protocol || resp.State.Phase != guestv1.State_PHASE_RUNNING {
		t.Fatalf("got %v, %v", resp, err)
	}
	if s := sees(guestv1.State_PHASE_RUNNING); s.Disks[0].Target != "vda" || s.Machine != "q35" || s.Started == nil {
		t.Errorf("running with %v", s)
	}
	d.End(driver.Shutdown)
	if s := sees(guestv1.State_PHASE_STOPPED); s.StopReason != guestv1.State_STOP_REASON_SHUTDOWN {
		t.Errorf("stopped with %v", s)
	}
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		req  *guestv1.SyncVirtualMachineRequest
		code codes.Code
		text string
	}{
		"protocol":  {&guestv1.SyncVirtualMachineRequest{}, codes.FailedPrecondition, "protocol 0"},
		"no JSON":   {&guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte("{")}, codes.InvalidArgument, "reading the VMI"},
		"too large": {&guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: make([]byte, 1<<20+1)}, codes.InvalidArgument, "at most"},
		"bad luck":  {&guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte(`{"metadata":{"name":"unlucky"}}`)}, codes.Aborted, "no space left, ?xxx"},
		"a field":   {&guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte(`{"metadata":{"name":"bad"}}`)}, codes.InvalidArgument, "spec.domain.cpu.cores"},
	} {
		_, c := launcher(t)
		_, err := c.SyncVirtualMachine(t.Context(), tc.req)
		if status.Code(err) != tc.code || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: got %v, want %s with %q", name, err, tc.code, tc.text)
		}
	}
	_, c := launcher(t)
	if _, err := c.Act(t.Context(), &guestv1.ActRequest{Protocol: 1}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no act: %v", err)
	}
}

// The spec of a VMI doesn't change: a refusal of it is the guest's end, and every watcher is told. What another request
// would mend, or time, is not.
func TestARefusalIsFinal(t *testing.T) {
	for name, tc := range map[string]struct {
		vmi   string
		phase guestv1.State_Phase
	}{
		"bad":     {`{"metadata":{"name":"bad"}}`, guestv1.State_PHASE_STOPPED},
		"unlucky": {`{"metadata":{"name":"unlucky"}}`, guestv1.State_PHASE_NOT_STARTED},
		"no JSON": {`{`, guestv1.State_PHASE_NOT_STARTED},
	} {
		_, c := launcher(t)
		if _, err := c.SyncVirtualMachine(t.Context(), &guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte(tc.vmi)}); err == nil {
			t.Errorf("%s: accepted", name)
		}
		w, err := c.Watch(t.Context(), &guestv1.WatchRequest{Protocol: 1})
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.Recv()
		if err != nil || s.GetPhase() != tc.phase {
			t.Fatalf("%s: got %v, %v; want %s", name, s, err, tc.phase)
		}
		if told := strings.Contains(s.GetMessage(), "spec.domain.cpu.cores"); told != (tc.phase == guestv1.State_PHASE_STOPPED) {
			t.Errorf("%s: the watcher is told %q", name, s.GetMessage())
		}
	}
}

func TestAGuestIsPausedAndStartsPaused(t *testing.T) {
	act := func(c guestv1.GuestClient, r *guestv1.ActRequest) {
		t.Helper()
		r.Protocol = guestv1.Protocol
		if _, err := c.Act(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	_, c := launcher(t)
	r, err := c.SyncVirtualMachine(t.Context(), &guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte(`{"spec":{"startStrategy":"Paused"}}`)})
	if err != nil || r.GetState().GetPhase() != guestv1.State_PHASE_PAUSED {
		t.Fatalf("got %v, %v; want a paused guest", r, err)
	}
	w, err := c.Watch(t.Context(), &guestv1.WatchRequest{Protocol: 1})
	if err != nil {
		t.Fatal(err)
	}
	until := func(want guestv1.State_Phase) {
		t.Helper()
		for {
			if s, err := w.Recv(); err != nil || s.GetPhase() == want {
				if err != nil {
					t.Fatalf("waiting for %s: %v", want, err)
				}
				return
			}
		}
	}
	act(c, &guestv1.ActRequest{Act: &guestv1.ActRequest_Unpause{Unpause: &guestv1.Unpause{}}})
	until(guestv1.State_PHASE_RUNNING)
	act(c, &guestv1.ActRequest{Act: &guestv1.ActRequest_Pause{Pause: &guestv1.Pause{}}})
	until(guestv1.State_PHASE_PAUSED)
}

// Who asks a guest to shut down is told whether that is news: agents come and go, and each of them asks again.
func TestTheFirstShutdownIsToldFromTheNext(t *testing.T) {
	d, c := launcher(t)
	d.Deafen()
	shutdown := &guestv1.ActRequest{Protocol: guestv1.Protocol, Act: &guestv1.ActRequest_Shutdown{Shutdown: &guestv1.Shutdown{}}}
	if _, err := c.Act(t.Context(), shutdown); err == nil {
		t.Error("asked a guest that isn't there")
	}
	if _, err := c.SyncVirtualMachine(t.Context(), &guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true, true} {
		if r, err := c.Act(t.Context(), shutdown); err != nil || r.GetAgain() != want {
			t.Errorf("request %d: again %t, %v; want %t", i, r.GetAgain(), err, want)
		}
	}
}

// broken is a driver whose guest can't start, and that says so with bytes that are no text.
type broken struct{ *fake.Driver }

func (broken) Start(context.Context, driver.Phase) error {
	return errors.New("can't open b\xfccher:\n" + strings.Repeat("\xfe", 2*guest.Longest))
}

// A state with a message that is not UTF-8 would not reach anybody: protobuf refuses it.
func TestAWatcherSeesWhatIsNoText(t *testing.T) {
	c := dial(t, broken{fake.Open()})
	_, err := c.SyncVirtualMachine(t.Context(), &guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte("{}")})
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "can't open b?cher: ?") {
		t.Errorf("got %.80v, want the reason", err)
	}
	w, err := c.Watch(t.Context(), &guestv1.WatchRequest{Protocol: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Recv()
	if err != nil || !strings.HasPrefix(s.GetMessage(), "can't open b?cher: ?") || len(s.GetMessage()) > guest.Longest {
		t.Errorf("got %.80v, %v; want the reason in at most %d bytes", s, err, guest.Longest)
	}
}
