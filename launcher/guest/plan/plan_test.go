package plan_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/guest/plan"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func TestFor(t *testing.T) {
	paused := driver.State{Phase: driver.Paused}
	running, ended := driver.State{Phase: driver.Running}, func(w driver.Why) driver.State { return driver.State{Phase: driver.Ended, Why: w} }
	for name, tc := range map[string]struct {
		seen    plan.Seen
		want    string
		recheck time.Time
	}{
		"nobody asked yet":        {plan.Seen{}, "[]", time.Time{}},
		"asked":                   {plan.Seen{Wanted: true}, "[starting the guest]", time.Time{}},
		"asked and running":       {plan.Seen{Wanted: true, State: running}, "[]", time.Time{}},
		"told to go, not started": {plan.Seen{Wanted: true, StopSince: now}, "[exiting with 0: stopped before the guest was started]", time.Time{}},
		"told to go":              {plan.Seen{State: running, StopSince: now, Grace: time.Minute}, "[pressing the power button]", now.Add(5 * time.Second)},
		"pressed just now":        {plan.Seen{State: running, StopSince: ago(2 * time.Second), Pressed: ago(2 * time.Second), Grace: time.Minute}, "[]", now.Add(3 * time.Second)},
		"deadline is near":        {plan.Seen{State: running, StopSince: ago(9 * time.Second), Pressed: ago(time.Second), Grace: 10 * time.Second}, "[]", now.Add(time.Second)},
		"deaf":                    {plan.Seen{State: running, StopSince: ago(time.Minute), Pressed: now, Grace: time.Minute}, "[destroying the guest: it did not shut down within 1m0s]", now.Add(5 * time.Second)},
		"paused":                  {plan.Seen{State: paused, StopSince: ago(9 * time.Second), Grace: time.Minute}, "[]", now.Add(51 * time.Second)},
		"paused too long":         {plan.Seen{State: paused, StopSince: ago(time.Minute), Grace: time.Minute}, "[destroying the guest: it did not shut down within 1m0s]", now.Add(5 * time.Second)},
		"no grace":                {plan.Seen{State: running, StopSince: now}, "[destroying the guest: it did not shut down within 0s]", now.Add(5 * time.Second)},
		"shut down":               {plan.Seen{Wanted: true, State: ended(driver.Shutdown)}, "[exiting with 0: the guest shut down]", time.Time{}},
		"destroyed on request":    {plan.Seen{StopSince: now, State: ended(driver.Destroyed)}, "[exiting with 0: the guest was stopped]", time.Time{}},
		"destroyed by a stranger": {plan.Seen{State: ended(driver.Destroyed)}, "[exiting with 1: the guest was destroyed, and nobody had asked for it]", time.Time{}},
		"crashed":                 {plan.Seen{State: ended(driver.Crashed)}, "[exiting with 1: the guest crashed, or QEMU ended unasked]", time.Time{}},
		"never started":           {plan.Seen{State: ended(driver.Failed)}, "[exiting with 1: QEMU could not be started]", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.For(now, tc.seen)
			if fmt.Sprint(got.Actions) != tc.want || !got.Recheck.Equal(tc.recheck) {
				t.Errorf("got %v, recheck %s; want %s, %s", got.Actions, got.Recheck, tc.want, tc.recheck)
			}
		})
	}
}

func TestStartsThatFail(t *testing.T) {
	refusal := fmt.Errorf("storing the guest: %w", driver.Refusal{Err: errors.New("unsupported configuration: no such thing")})
	full := errors.New("storing the guest: no space left on device")
	for name, tc := range map[string]struct {
		err   error
		first time.Time
		want  bool
	}{
		"refused":                {refusal, now, true},
		"refused by a later try": {refusal, ago(time.Minute), true},
		"by bad luck":            {full, now, false},
		"by bad luck, for long":  {full, ago(plan.StartPatience), true},
		"libvirtd is away":       {fmt.Errorf("x: %w", driver.ErrGone), now, false},
		"libvirtd is still away": {fmt.Errorf("x: %w", driver.ErrGone), ago(time.Hour), false}, // the launcher ends for that
	} {
		if got := plan.GivesUp(now, tc.first, tc.err); got != tc.want {
			t.Errorf("%s: gives up: %t, want %t", name, got, tc.want)
		}
	}
}

// Whatever is seen, a guest that has ended or is alive is never started, and one that is to go has a time at which
// something happens.
func TestForHoldsForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := plan.Seen{
			State:  driver.State{Phase: driver.Phase(rapid.IntRange(0, int(driver.Ended)).Draw(t, "phase")), Why: driver.Why(rapid.IntRange(0, int(driver.Failed)).Draw(t, "why"))},
			Wanted: rapid.Bool().Draw(t, "wanted"),
			Grace:  time.Duration(rapid.IntRange(0, 100).Draw(t, "grace")) * time.Second,
		}
		if rapid.Bool().Draw(t, "stopping") {
			s.StopSince = ago(time.Duration(rapid.IntRange(0, 200).Draw(t, "since")) * time.Second)
			s.Pressed = ago(time.Duration(rapid.IntRange(0, 200).Draw(t, "pressed")) * time.Second)
		}
		p := plan.For(now, s)
		for _, a := range p.Actions {
			if _, start := a.(plan.Start); start && (s.State.Phase == driver.Ended || s.State.Phase.Alive()) {
				t.Fatalf("starts a guest that is %s", s.State.Phase)
			}
		}
		if !s.StopSince.IsZero() && len(p.Actions) == 0 && !p.Recheck.After(now) {
			t.Fatalf("waits for ever: %+v", p)
		}
	})
}
