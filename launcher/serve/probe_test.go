package serve_test

import (
	"errors"
	"reflect"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/driver"
)

// A probe goes by the guest's agent; a paused guest has none that could answer, and a ping of it does no harm.
func TestAProbeAsksTheAgent(t *testing.T) {
	d, c := launcher(t)
	probe := func(want codes.Code, command ...string) *guestv1.ProbeResponse {
		t.Helper()
		r, err := c.Probe(t.Context(), &guestv1.ProbeRequest{Protocol: guestv1.Protocol, Command: command})
		if status.Code(err) != want {
			t.Errorf("probe %q: got %v, want %s", command, err, want)
		}
		return r
	}
	probe(codes.FailedPrecondition)
	if _, err := c.SyncVirtualMachine(t.Context(), &guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	probe(codes.FailedPrecondition)
	d.Connect(func(call driver.AgentCall) (info driver.AgentInfo, err error) {
		switch {
		case reflect.DeepEqual(call, driver.Run{Path: "/bin/check", Args: []string{"disk"}}):
			info.Ran = driver.AgentRan{Exit: 3, Output: "disk\x00 is\n full\x1b"}
		case call != driver.AgentCall(driver.Ping{}) && !reflect.DeepEqual(call, driver.AskSystem{}):
			err = errors.New("no such program")
		}
		return info, err
	})
	probe(codes.OK)
	if r := probe(codes.OK, "/bin/check", "disk"); r.GetExitCode() != 3 || r.GetOutput() != "disk  is  full" {
		t.Errorf("got %v", r)
	}
	probe(codes.FailedPrecondition, "/bin/other")
	if _, err := c.Act(t.Context(), &guestv1.ActRequest{Protocol: 1, Act: &guestv1.ActRequest_Pause{Pause: &guestv1.Pause{}}}); err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), &guestv1.WatchRequest{Protocol: 1})
	if err != nil {
		t.Fatal(err)
	}
	for s, err := w.Recv(); s.GetPhase() != guestv1.State_PHASE_PAUSED; s, err = w.Recv() {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.Connect(nil)
	probe(codes.OK)
	probe(codes.FailedPrecondition, "/bin/check", "disk")
}
