// Package plan decides what a launcher does with its guest next. It is pure: facts come in, actions go out.
package plan

import (
	"errors"
	"fmt"
	"time"

	"virtstack.io/virtstack/launcher/driver"
)

// PressEvery is how often the power button of a guest that is to go is pressed; source: contract of KubeVirt.
const PressEvery = 5 * time.Second

// StartPatience is how long a start is tried that fails for reasons that may go away.
const StartPatience = 2 * time.Minute

// Seen are one round's facts.
type Seen struct {
	State driver.State
	// Wanted is true once a node agent has asked for the guest.
	Wanted bool
	// StopSince is when the launcher was told to end; zero: it wasn't.
	StopSince time.Time
	// Pressed is when the power button was last pressed; zero: never.
	Pressed time.Time
	// Grace is how long the guest may take to shut down.
	Grace time.Duration
}

// Action is something that the loop does.
type Action interface{ String() string }

// The actions.
type (
	// Start defines and starts the guest.
	Start struct{}
	// PressPower presses the ACPI power button.
	PressPower struct{}
	// Destroy ends the guest at once.
	Destroy struct{ Why string }
	// Exit ends the launcher, with its exit code and the reason for people.
	Exit struct {
		Code int
		Why  string
	}
)

func (Start) String() string      { return "starting the guest" }
func (PressPower) String() string { return "pressing the power button" }
func (d Destroy) String() string  { return "destroying the guest: " + d.Why }
func (e Exit) String() string     { return fmt.Sprintf("exiting with %d: %s", e.Code, e.Why) }

// Plan is what to do now, and when to look again even if nothing happens (zero: never).
type Plan struct {
	Actions []Action
	Recheck time.Time
}

// For decides. A guest that has ended is never started again: it gets a new launcher.
func For(now time.Time, s Seen) Plan {
	stopping := !s.StopSince.IsZero()
	switch {
	case s.State.Phase == driver.Ended:
		return do(exit(s))
	case !s.State.Phase.Alive() && stopping:
		return do(Exit{0, "stopped before the guest was started"})
	case !s.State.Phase.Alive() && s.Wanted:
		return do(Start{})
	case s.State.Phase.Alive() && stopping:
		return stop(now, s)
	}
	return Plan{}
}

// GivesUp tells whether a start that failed is the last, the first having failed at that time: because no later try
// would end otherwise, or because none has for long.
func GivesUp(now, first time.Time, err error) bool {
	return errors.As(err, &driver.Refusal{}) || !errors.Is(err, driver.ErrGone) && now.Sub(first) >= StartPatience
}

func do(a Action) Plan { return Plan{Actions: []Action{a}} }

func stop(now time.Time, s Seen) Plan {
	deadline := s.StopSince.Add(s.Grace)
	if !now.Before(deadline) {
		p := do(Destroy{fmt.Sprintf("it did not shut down within %s", s.Grace)})
		p.Recheck = now.Add(PressEvery) // if that fails
		return p
	}
	if s.State.Phase == driver.Paused { // it hears nothing until it goes on
		return Plan{Recheck: deadline}
	}
	next := s.Pressed.Add(PressEvery)
	var p Plan
	if !now.Before(next) {
		p = do(PressPower{})
		next = now.Add(PressEvery)
	}
	p.Recheck = next
	if deadline.Before(next) {
		p.Recheck = deadline
	}
	return p
}

func exit(s Seen) Exit {
	switch s.State.Why {
	case driver.Shutdown:
		return Exit{0, "the guest shut down"}
	case driver.Destroyed:
		if !s.StopSince.IsZero() {
			return Exit{0, "the guest was stopped"}
		}
		return Exit{1, "the guest was destroyed, and nobody had asked for it"}
	case driver.Crashed:
		return Exit{1, "the guest crashed, or QEMU ended unasked"}
	}
	return Exit{1, "QEMU could not be started"}
}
