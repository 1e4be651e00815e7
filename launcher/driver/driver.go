// Package driver is the seam between a launcher and what runs its guest. A driver runs one guest, once.
package driver

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrGone is in the error of every method once what runs guests has died.
var ErrGone = errors.New("the hypervisor daemon has ended")

// Refusal is in the error of Define and Start where the guest can't be what its XML says: the same call fails the same
// way for ever. Any other error may be gone the next time.
type Refusal struct{ Err error }

func (r Refusal) Error() string { return r.Err.Error() }

// Unwrap returns what the hypervisor said.
func (r Refusal) Unwrap() error { return r.Err }

// Driver runs one guest. Methods may be called from several goroutines.
type Driver interface {
	// State tells what is true now. It is the only source of facts: no method's result is needed to know how it went.
	State(ctx context.Context) (State, error)
	// Events gives a value when State may have changed. Values may be joined or spurious; the channel is closed when the
	// driver can no longer serve.
	Events() <-chan struct{}
	// Define stores the guest's libvirt XML. Storing the same guest again replaces what was stored. XML that no guest can
	// be made of is a Refusal.
	Define(ctx context.Context, xml string) error
	// Start starts the stored guest in phase Running, or Paused before its first instruction. It fails if the guest runs or
	// ever ran.
	Start(ctx context.Context, first Phase) error
	// Stop ends the guest at once, as pulling the plug does. A guest that doesn't run is left as it is.
	Stop(ctx context.Context) error
	// Act asks the running guest for something and returns before it is done. It fails if the guest doesn't run.
	Act(ctx context.Context, act Act) error
	// Agent asks the agent in the running guest and waits for each answer of it no longer than AgentPatience; ErrNoAgent
	// is in the error where none is connected. Only AskSystem and Run give an AgentInfo.
	Agent(ctx context.Context, call AgentCall) (AgentInfo, error)
	// Dump writes the running guest's memory to w, as an ELF core, and returns when it is there. The guest's CPUs stand
	// still meanwhile; its phase stays as it is. When ctx ends or w fails, the dump ends with that error, and the guest
	// goes on. There is one at a time.
	Dump(ctx context.Context, w io.Writer) error
}

// Act is something that a running guest can be asked for.
type Act int

// Acts of this protocol version.
const (
	// PressPower presses the ACPI power button. It fails with a paused guest, which can't hear it.
	PressPower Act = iota + 1
	// Pause stops the CPUs; those of a paused guest stand still already.
	Pause
	// Resume lets the CPUs go on; those of a guest that isn't paused do already.
	Resume
)

// State is what a driver knows of its guest.
type State struct {
	Phase Phase
	// Why a guest in phase Ended has ended.
	Why Why
	// Machine is the machine type in use, such as pc-q35-10.0; empty before Define.
	Machine string
	// Started is when the guest was started; zero if it wasn't, or if that is not known.
	Started time.Time
	// Agent is true while the guest's system has an agent that listens.
	Agent bool
}

// Phase is where a guest is in its one life.
type Phase int

// Phases, in the order in which a guest goes through them.
const (
	// Absent is a guest that was not defined.
	Absent Phase = iota
	// Defined is a guest that never ran.
	Defined
	Running
	Paused
	// ShuttingDown is a guest whose system says that it is going down.
	ShuttingDown
	// Ended is final.
	Ended
)

var phases = []string{"absent", "defined", "running", "paused", "shutting down", "ended"}

func (p Phase) String() string { return phases[p] }

// Alive is true while there is a process that runs the guest.
func (p Phase) Alive() bool { return p == Running || p == Paused || p == ShuttingDown }

// Why is the reason for a guest's end.
type Why int

// Reasons for an end.
const (
	// NotEnded is the reason of a guest that has none.
	NotEnded Why = iota
	// Shutdown is the end that the guest made itself.
	Shutdown
	// Destroyed is the end by Stop.
	Destroyed
	// Crashed is QEMU ending unasked, or the guest's system telling that it can't go on.
	Crashed
	// Failed is QEMU not starting.
	Failed
)

var whys = []string{"not ended", "shut down", "destroyed", "crashed", "failed"}

func (w Why) String() string { return whys[w] }
