package serve_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/launcher/guest"
)

// kept is a file that takes everything.
type kept struct{ bytes.Buffer }

func (*kept) Keep() error { return nil }
func (*kept) Drop() error { return nil }

func dumps(o guest.Order) (guest.DumpFile, error) {
	if o.Bytes > 100 {
		return nil, errors.New("no space left on the volume")
	}
	return &kept{}, nil
}

func TestAWatcherSeesWhatBecomesOfADump(t *testing.T) {
	_, c := launcher(t)
	if _, err := c.SyncVirtualMachine(t.Context(), &guestv1.SyncVirtualMachineRequest{Protocol: 1, Vmi: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(t.Context(), &guestv1.WatchRequest{Protocol: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		file, problem string
		bytes         uint64
	}{{"a.memory.dump", "", 100}, {"b.memory.dump", "no space left", 101}} {
		ask := &guestv1.DumpMemory{Volume: "dumps", File: tc.file, Timeout: 60, Bytes: tc.bytes}
		if _, err := c.Act(t.Context(), &guestv1.ActRequest{Protocol: 1, Act: &guestv1.ActRequest_DumpMemory{DumpMemory: ask}}); err != nil {
			t.Fatal(err)
		}
		var d *guestv1.Dump
		for d.GetFile() != tc.file || d.GetRunning() {
			s, err := w.Recv()
			if err != nil {
				t.Fatal(err)
			}
			d = s.GetDump()
		}
		if d.GetVolume() != "dumps" || d.GetEnded() == nil || !strings.Contains(d.GetProblem(), tc.problem) || (d.GetProblem() == "") != (tc.problem == "") {
			t.Errorf("got %v, want problem %q", d, tc.problem)
		}
	}
	if _, err := c.Act(t.Context(), &guestv1.ActRequest{Protocol: 1, Act: &guestv1.ActRequest_StopDump{StopDump: &guestv1.StopDump{}}}); err != nil {
		t.Errorf("stopping a dump that has ended: %v", err)
	}
}
