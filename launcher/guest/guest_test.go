package guest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/driver/fake"
	"virtstack.io/virtstack/launcher/guest"
)

const xml = `<domain type="qemu"><name>n_web</name><os><type machine="q35">hvm</type></os><devices><disk type="block" device="disk"><target dev="vda"/></disk></devices></domain>`

// run starts a guest and its loop.
func run(t *testing.T, grace time.Duration) (*fake.Driver, *guest.Guest, <-chan guest.Exit) {
	t.Helper()
	d := fake.Open()
	g := guest.New(d, grace)
	exit := make(chan guest.Exit, 1)
	go func() { exit <- g.Loop(t.Context()) }()
	return d, g, exit
}

func ends(t *testing.T, exit <-chan guest.Exit, code int) guest.Exit {
	t.Helper()
	select {
	case e := <-exit:
		if e.Code != code || e.Why == "" {
			t.Errorf("ended with %d %q, want %d and a reason", e.Code, e.Why, code)
		}
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("the loop goes on")
	}
	return guest.Exit{}
}

func TestOneStartHoweverOftenItIsAskedFor(t *testing.T) {
	d, g, exit := run(t, time.Minute)
	for range 5 {
		if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
			t.Fatal(err)
		}
	}
	d.End(driver.Shutdown)
	ends(t, exit, 0)
	if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
		t.Error(err)
	}
	if r, _ := g.Report(); r.State.Phase != driver.Ended || d.Starts() != 1 {
		t.Errorf("phase %s after %d starts, want ended after 1", r.State.Phase, d.Starts())
	}
}

func TestHowALauncherEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(context.Context, *fake.Driver, *guest.Guest)
		code int
	}{
		"the guest shuts down":    {func(_ context.Context, d *fake.Driver, _ *guest.Guest) { d.End(driver.Shutdown) }, 0},
		"the guest crashes":       {func(_ context.Context, d *fake.Driver, _ *guest.Guest) { d.End(driver.Crashed) }, 1},
		"libvirtd dies":           {func(_ context.Context, d *fake.Driver, _ *guest.Guest) { d.Die() }, 3},
		"told to end":             {func(_ context.Context, _ *fake.Driver, g *guest.Guest) { g.Stop(time.Now()) }, 0},
		"told to end, but deaf":   {func(_ context.Context, d *fake.Driver, g *guest.Guest) { d.Deafen(); g.Stop(time.Now()) }, 0},
		"killed by request":       {func(ctx context.Context, _ *fake.Driver, g *guest.Guest) { _ = g.Kill(ctx, time.Now()) }, 0},
		"destroyed by a stranger": {func(ctx context.Context, d *fake.Driver, _ *guest.Guest) { _ = d.Stop(ctx) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			d, g, exit := run(t, 50*time.Millisecond)
			if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
				t.Fatal(err)
			}
			tc.do(t.Context(), d, g)
			ends(t, exit, tc.code)
		})
	}
}

func TestAGuestThatWillNeverBeEndsTheLauncher(t *testing.T) {
	const why = "spec.volumes[0].containerDisk.path: Invalid value: \"/disk/nope.img\": there is none"
	d, g, exit := run(t, time.Minute)
	g.Refuse(why)
	if e := ends(t, exit, 1); e.Why != why {
		t.Errorf("exit says %q, want %q", e.Why, why)
	}
	if r, _ := g.Report(); r.State.Phase != driver.Ended || r.State.Why != driver.Failed || r.Message != why {
		t.Errorf("the report says %+v", r)
	}
	if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil || d.Starts() != 0 {
		t.Errorf("started %d times after the refusal, %v", d.Starts(), err)
	}
}

// A refusal that comes late, of a call that another overtook, ends nothing.
func TestAGuestThatRunsIsNotRefused(t *testing.T) {
	d, g, exit := run(t, time.Minute)
	if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
		t.Fatal(err)
	}
	g.Refuse("too late")
	if r, _ := g.Report(); r.State.Phase != driver.Running || r.Message != "" {
		t.Errorf("the report says %+v", r)
	}
	d.End(driver.Shutdown)
	ends(t, exit, 0)
}

func TestToldToEndBeforeTheGuestWasAskedFor(t *testing.T) {
	_, g, exit := run(t, time.Minute)
	g.Stop(time.Now())
	ends(t, exit, 0)
}

func TestAGuestThatCantStartSaysWhy(t *testing.T) {
	_, g, exit := run(t, time.Minute)
	missing := `<domain type="qemu"><os><type machine="q35">hvm</type></os><devices><disk type="file" device="disk"><source file="/no/such/disk"/><target dev="vda"/></disk></devices></domain>`
	err := g.SyncVMI(t.Context(), missing, driver.Running)
	if err == nil {
		t.Fatal("no error")
	}
	if e := ends(t, exit, 1); e.Why != err.Error() {
		t.Errorf("exit says %q, the start said %q", e.Why, err)
	}
}

const sameTarget = `<domain type="qemu"><name>n_web</name><os><type machine="q35">hvm</type></os><devices><disk type="block" device="disk"><target dev="vda"/></disk><disk type="block" device="disk"><target dev="vda"/></disk></devices></domain>`

// unlucky is a driver that fails to store guests for a while, for no reason of theirs.
type unlucky struct {
	*fake.Driver
	left int
}

func (u *unlucky) Define(ctx context.Context, xml string) error {
	if u.left--; u.left >= 0 {
		return errors.New("storing the guest: no space left on device")
	}
	return u.Driver.Define(ctx, xml)
}

// What libvirt refuses it refuses for ever: nobody asks again, and the reason is what libvirt said.
func TestAGuestThatTheHypervisorRefusesEndsTheLauncher(t *testing.T) {
	d, g, exit := run(t, time.Minute)
	err := g.SyncVMI(t.Context(), sameTarget, driver.Running)
	if err == nil || !strings.Contains(err.Error(), "target 'vda' duplicated") {
		t.Fatalf("got %v", err)
	}
	if e := ends(t, exit, 1); e.Why != err.Error() {
		t.Errorf("exit says %q, the refusal was %q", e.Why, err)
	}
	if r, _ := g.Report(); r.State.Phase != driver.Ended || r.State.Why != driver.Failed || r.Message != err.Error() {
		t.Errorf("the report says %+v", r)
	}
	if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil || d.Starts() != 0 {
		t.Errorf("started %d times after the refusal, %v", d.Starts(), err)
	}
}

// late is a driver whose start fails though the guest runs, which can't be seen at once.
type late struct {
	*fake.Driver
	blind bool
}

func (l *late) Start(ctx context.Context, first driver.Phase) error {
	l.blind = true
	return errors.Join(driver.Refusal{Err: errors.New("starting the guest: no answer")}, l.Driver.Start(ctx, first))
}

func (l *late) State(ctx context.Context) (driver.State, error) {
	if l.blind {
		l.blind = false
		return driver.State{}, errors.New("no answer")
	}
	return l.Driver.State(ctx)
}

func TestAGuestThatMayRunIsNotGivenUp(t *testing.T) {
	g := guest.New(&late{Driver: fake.Open()}, time.Minute)
	if err := g.SyncVMI(t.Context(), xml, driver.Running); err == nil {
		t.Fatal("no error")
	}
	if r, _ := g.Report(); r.State.Phase == driver.Ended {
		t.Errorf("the report says %+v", r)
	}
	if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
		t.Fatal(err)
	}
	if r, _ := g.Report(); r.State.Phase != driver.Running {
		t.Errorf("the report says %+v", r)
	}
}

func TestAStartThatFailsByBadLuckIsTriedAgain(t *testing.T) {
	d := &unlucky{fake.Open(), 2}
	g := guest.New(d, time.Minute)
	for range 2 {
		if err := g.SyncVMI(t.Context(), xml, driver.Running); err == nil {
			t.Fatal("no error")
		}
		if r, _ := g.Report(); r.State.Phase != driver.Absent {
			t.Errorf("the report says %+v", r)
		}
	}
	if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil || d.Starts() != 1 {
		t.Errorf("%d starts, %v", d.Starts(), err)
	}
}

// Whose wish an end was can only be told apart by the launcher: a guest ends the same way when its Pod is taken away.
func TestAGuestThatEndsForItsLauncherSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		do   func(context.Context, *fake.Driver, *guest.Guest)
		want bool
	}{
		"shut down by itself":    {func(_ context.Context, d *fake.Driver, _ *guest.Guest) { d.End(driver.Shutdown) }, false},
		"ended by its VMI's end": {func(ctx context.Context, _ *fake.Driver, g *guest.Guest) { _ = g.Kill(ctx, time.Now()) }, false},
		"the launcher must end":  {func(_ context.Context, _ *fake.Driver, g *guest.Guest) { g.Stop(time.Now()) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d, g, exit := run(t, time.Minute)
			if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
				t.Fatal(err)
			}
			tc.do(t.Context(), d, g)
			ends(t, exit, 0)
			g.Stop(time.Now()) // too late to mean anything
			if err := g.SyncVMI(t.Context(), xml, driver.Running); err != nil {
				t.Error(err)
			}
			if r, _ := g.Report(); r.Told != tc.want {
				t.Errorf("told to end: %v, want %v", r.Told, tc.want)
			}
		})
	}
}
