package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"virtstack.io/virtstack/launcher/driver"
)

// core counts what a dump has, and keeps its beginning. What it is told to do with the first write, it does.
type core struct {
	head  bytes.Buffer
	size  int64
	first func() error
}

func (c *core) Write(p []byte) (int, error) {
	if c.size == 0 && c.first != nil {
		if err := c.first(); err != nil {
			return 0, err
		}
	}
	c.size += int64(len(p))
	if c.head.Len() < 4 {
		c.head.Write(p[:min(len(p), 4-c.head.Len())])
	}
	return len(p), nil
}

// whole wants a dump of the guest's 32 MiB.
func (c *core) whole(t *testing.T) {
	t.Helper()
	if c.head.String() != "\x7fELF" || c.size < 32<<20 {
		t.Errorf("got %d bytes that begin with %q, want an ELF core of at least 32 MiB", c.size, c.head.String())
	}
}

func dumps(t *testing.T, d Driver) {
	if err := d.Dump(t.Context(), io.Discard); err == nil {
		t.Error("dumped the memory of nothing")
	}
	must(t, d.Define(t.Context(), guest(t)))
	if err := d.Dump(t.Context(), io.Discard); err == nil {
		t.Error("dumped the memory of a guest that never ran")
	}
	must(t, d.Start(t.Context(), driver.Running))
	await(t, d, driver.Running)
	for range 2 {
		c := &core{first: func() error {
			s, err := d.State(t.Context())
			if s.Phase != driver.Running {
				t.Errorf("while it is dumped: %s", s.Phase)
			}
			return err
		}}
		must(t, d.Dump(t.Context(), c))
		c.whole(t)
		want(t, d, driver.Running, driver.NotEnded)
	}
	must(t, d.Stop(t.Context()))
	if err := d.Dump(t.Context(), io.Discard); err == nil {
		t.Error("dumped the memory of an ended guest")
	}
}

func dumpsPaused(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t)))
	must(t, d.Start(t.Context(), driver.Paused))
	c := &core{}
	must(t, d.Dump(t.Context(), c))
	c.whole(t)
	want(t, d, driver.Paused, driver.NotEnded)
}

func dumpFails(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t)))
	must(t, d.Start(t.Context(), driver.Running))
	await(t, d, driver.Running)
	full := errors.New("no space left")
	if err := d.Dump(t.Context(), &core{first: func() error { return full }}); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
	goesOn(t, d)
}

func dumpIsCancelled(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t)))
	must(t, d.Start(t.Context(), driver.Running))
	await(t, d, driver.Running)
	late := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := d.Dump(ctx, &core{first: func() error { cancel(late); return nil }}); !errors.Is(err, late) {
		t.Errorf("got %v, want %v", err, late)
	}
	goesOn(t, d)
}

// goesOn wants the guest to run, and to be dumped after all.
func goesOn(t *testing.T, d Driver) {
	t.Helper()
	await(t, d, driver.Running)
	c := &core{}
	must(t, d.Dump(t.Context(), c))
	c.whole(t)
	must(t, d.Act(t.Context(), driver.Pause))
	await(t, d, driver.Paused)
}
