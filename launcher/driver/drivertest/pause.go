package drivertest

import (
	"testing"

	"virtstack.io/virtstack/launcher/driver"
)

func pauses(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t)))
	for _, act := range []driver.Act{driver.Pause, driver.Resume} {
		if err := d.Act(t.Context(), act); err == nil {
			t.Errorf("act %d of a guest that doesn't run", act)
		}
	}
	must(t, d.Start(t.Context(), driver.Running))
	await(t, d, driver.Running)
	must(t, d.Act(t.Context(), driver.Resume)) // it does already
	must(t, d.Act(t.Context(), driver.Pause))
	await(t, d, driver.Paused)
	must(t, d.Act(t.Context(), driver.Pause))
	want(t, d, driver.Paused, driver.NotEnded)
	must(t, d.Act(t.Context(), driver.Resume))
	await(t, d, driver.Running)
	must(t, d.Act(t.Context(), driver.Pause))
	must(t, d.Stop(t.Context()))
	want(t, d, driver.Ended, driver.Destroyed)
	if err := d.Act(t.Context(), driver.Resume); err == nil {
		t.Error("an ended guest was resumed")
	}
}

func startsPaused(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t)))
	must(t, d.Start(t.Context(), driver.Paused))
	want(t, d, driver.Paused, driver.NotEnded)
	if err := d.Start(t.Context(), driver.Running); err == nil {
		t.Error("a paused guest was started again")
	}
	if err := d.Act(t.Context(), driver.PressPower); err == nil {
		t.Error("a paused guest heard the power button")
	}
	want(t, d, driver.Paused, driver.NotEnded)
	must(t, d.Act(t.Context(), driver.Resume))
	await(t, d, driver.Running)
}
