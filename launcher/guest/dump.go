package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Errors of dumps.
var (
	// ErrDumping is returned for a second dump beside one that runs.
	ErrDumping = errors.New("another dump of the guest's memory is being written")

	errLate    = errors.New("it took too long")
	errStopped = errors.New("it was stopped")
	errEnding  = errors.New("the guest is to end")
)

// DumpFile is a new file for a guest's memory.
type DumpFile interface {
	io.Writer
	// Keep and Drop end the writing: with the file, or without.
	Keep() error
	Drop() error
}

// Order is a dump that somebody has asked for.
type Order struct {
	// Volume and File are where it goes; a file's name is asked for once.
	Volume, File string
	// Patience is how long it may take.
	Patience time.Duration
	// Bytes must be free on the volume.
	Bytes uint64
}

// Dump tells of a dump of the guest's memory.
type Dump struct {
	Volume, File string
	Running      bool
	// Problem is why there is no file: one Line; empty: there is, once it isn't running any more.
	Problem string
	Ended   time.Time
}

// DumpMemory begins to write the guest's memory to a new file, which open makes; the report tells how it goes. What was
// asked for before, however it went, is not done again.
func (g *Guest) DumpMemory(o Order, open func(Order) (DumpFile, error)) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch last := g.report.Dump; {
	case last != nil && last.Volume == o.Volume && last.File == o.File:
		return nil
	case last != nil && last.Running:
		return fmt.Errorf("%w: %s", ErrDumping, last.File)
	}
	ctx, late := context.WithTimeoutCause(context.Background(), o.Patience, errLate)
	ctx, stop := context.WithCancelCause(ctx)
	g.stopDump = stop
	g.dumped(Dump{Volume: o.Volume, File: o.File, Running: true})
	go func() {
		defer late()
		defer stop(nil)
		err := g.dump(ctx, o, open)
		g.mu.Lock()
		defer g.mu.Unlock()
		d := Dump{Volume: o.Volume, File: o.File, Ended: time.Now()}
		if err != nil {
			d.Problem = Line(err.Error())
		}
		g.dumped(d)
		g.look()
	}()
	return nil
}

// dump writes one dump; of one that fails no file is left.
func (g *Guest) dump(ctx context.Context, o Order, open func(Order) (DumpFile, error)) error {
	f, err := open(o)
	if err != nil {
		return err
	}
	if err := g.driver.Dump(ctx, f); err != nil {
		return errors.Join(err, f.Drop())
	}
	return f.Keep()
}

// StopDump ends a dump that runs.
func (g *Guest) StopDump() { g.endDump(errStopped) }

func (g *Guest) endDump(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopDump != nil {
		g.stopDump(why)
	}
}

// dumped makes a dump part of the report. The caller holds g.mu.
func (g *Guest) dumped(d Dump) {
	r := g.report
	r.Dump = &d
	g.tell(r)
}
