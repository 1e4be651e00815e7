package guest_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/driver/fake"
	"virtstack.io/virtstack/launcher/guest"
)

// file takes a dump and notes what became of it.
type file struct {
	bytes.Buffer
	full bool
	end  string
}

func (f *file) Write(p []byte) (int, error) {
	if f.full {
		return 0, errors.New("no space left on device")
	}
	return f.Buffer.Write(p)
}
func (f *file) Keep() error { f.end = "kept"; return nil }
func (f *file) Drop() error { f.end = "dropped"; return nil }

var order = guest.Order{Volume: "dumps", File: "web-dumps-1.memory.dump", Patience: time.Minute}

// dumped waits for the end of the dump.
func dumped(t *testing.T, g *guest.Guest) guest.Dump {
	t.Helper()
	for deadline := time.After(10 * time.Second); ; {
		r, news := g.Report()
		if r.Dump != nil && !r.Dump.Running {
			return *r.Dump
		}
		select {
		case <-news:
		case <-deadline:
			t.Fatal("the dump goes on")
		}
	}
}

func TestHowADumpEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		do      func(context.Context, *fake.Driver, *guest.Guest, *guest.Order, *file)
		end     string
		problem string
	}{
		"it is there":   {func(context.Context, *fake.Driver, *guest.Guest, *guest.Order, *file) {}, "kept", ""},
		"no more space": {func(_ context.Context, _ *fake.Driver, _ *guest.Guest, _ *guest.Order, f *file) { f.full = true }, "dropped", "no space left"},
		"too late": {func(_ context.Context, d *fake.Driver, _ *guest.Guest, o *guest.Order, _ *file) {
			d.Hold()
			o.Patience = time.Millisecond
		}, "dropped", "took too long"},
		"the guest has ended": {func(_ context.Context, d *fake.Driver, _ *guest.Guest, _ *guest.Order, _ *file) {
			d.End(driver.Crashed)
		}, "dropped", "ended"},
	} {
		t.Run(name, func(t *testing.T) {
			d, g, _ := run(t, time.Minute)
			if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
				t.Fatal(err)
			}
			o, f := order, &file{}
			tc.do(t.Context(), d, g, &o, f)
			if err := g.DumpMemory(o, func(guest.Order) (guest.DumpFile, error) { return f, nil }); err != nil {
				t.Fatal(err)
			}
			got := dumped(t, g)
			if f.end != tc.end || !strings.Contains(got.Problem, tc.problem) || (got.Problem == "") != (tc.problem == "") || got.Ended.IsZero() || got.File != o.File {
				t.Errorf("got %+v and a file that was %s, want problem %q and one that was %s", got, f.end, tc.problem, tc.end)
			}
		})
	}
}

// Whatever ends the guest, or the wish for a dump, ends a dump that runs.
func TestADumpIsStopped(t *testing.T) {
	for name, stop := range map[string]func(context.Context, *guest.Guest){
		"by request":         func(_ context.Context, g *guest.Guest) { g.StopDump() },
		"the launcher ends":  func(_ context.Context, g *guest.Guest) { g.Stop(time.Now()) },
		"the guest is ended": func(ctx context.Context, g *guest.Guest) { _ = g.Kill(ctx, time.Now()) },
		"power button":       func(ctx context.Context, g *guest.Guest) { _, _ = g.PressPower(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			d, g, _ := run(t, time.Minute)
			if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
				t.Fatal(err)
			}
			d.Hold()
			f := &file{}
			open := func(guest.Order) (guest.DumpFile, error) { return f, nil }
			if err := g.DumpMemory(order, open); err != nil {
				t.Fatal(err)
			}
			other := order
			other.File = "web-dumps-2.memory.dump"
			if err := g.DumpMemory(other, open); !errors.Is(err, guest.ErrDumping) {
				t.Errorf("a second dump beside the first: %v", err)
			}
			stop(t.Context(), g)
			if got := dumped(t, g); got.Problem == "" || f.end != "dropped" {
				t.Errorf("got %+v and a file that was %s", got, f.end)
			}
			if err := g.DumpMemory(order, open); err != nil {
				t.Error(err)
			}
			if r, _ := g.Report(); r.Dump.Running {
				t.Error("what was asked for before was done again")
			}
		})
	}
}
