// Package guest is the loop of a launcher's one guest: it starts it when a node agent asks for it, never again once it
// has ended, and sees it off when the launcher is told to end.
package guest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/guest/plan"
)

// gone is the exit code of a launcher whose libvirtd has died.
const gone = 3

// Guest runs one guest through a driver. Make it with New and run Loop.
type Guest struct {
	driver driver.Driver
	grace  time.Duration
	wake   chan struct{}

	round sync.Mutex // one round at a time

	mu     sync.Mutex
	xml    string // empty: nobody has asked for the guest
	first  driver.Phase
	refuse string    // why there will be no guest; empty: there is no reason
	tried  time.Time // when a start failed for the first time
	stop   time.Time
	told   bool // to end, by whoever ends the Pod
	asked  bool // to shut down, by the node agent
	press  time.Time
	// stopDump ends the last dump that was asked for; nil: none was.
	stopDump context.CancelCauseFunc

	report Report
	news   chan struct{} // closed and replaced with each new report
}

// Report is what is known of the guest, for those who watch.
type Report struct {
	State driver.State
	// Message tells people why, where there is something to tell: one Line.
	Message string
	// Told is set once the launcher was told to end while the guest had not ended.
	Told bool
	// Agent is what the guest's agent said, bounded; nil: there is none. It is shared: don't change it.
	Agent *driver.AgentInfo
	// Credentials is what became of the keys and passwords that the guest is to have; nil: it hasn't been asked yet.
	Credentials *Credentials
	// Dump is the last dump of the guest's memory; nil: none was asked for.
	Dump *Dump
}

// Credentials tells whether the guest has the keys and passwords that it is to have.
type Credentials struct {
	// Problem is why it hasn't: one Line; empty: it has.
	Problem string
}

// Exit is how the launcher has to end.
type Exit struct {
	Code int
	Why  string
}

// New returns the guest of a driver; grace is how long it may take to shut down.
func New(d driver.Driver, grace time.Duration) *Guest {
	return &Guest{driver: d, grace: grace, wake: make(chan struct{}, 1), news: make(chan struct{})}
}

// SyncVMI makes the guest be what xml says: starts it if it never ran, in phase Running or Paused. An error of the start
// shows in the report as well. Where no later try mends it, or QEMU has ended, it is final and the launcher then ends.
func (g *Guest) SyncVMI(ctx context.Context, xml string, first driver.Phase) error {
	g.mu.Lock()
	g.xml, g.first = xml, first
	g.mu.Unlock()
	_, err := g.step(ctx)
	g.look()
	return err
}

// Refuse says that there will be no guest: what was asked for can't be made, today or later. The report then shows a
// guest that could not be started, and the launcher ends. A guest that was started is left alone.
func (g *Guest) Refuse(why string) {
	g.round.Lock()
	defer g.round.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.xml != "" || g.refuse != "" {
		return
	}
	g.refuse = why
	r := g.report
	r.State.Phase, r.State.Why, r.Message = driver.Ended, driver.Failed, Line(why)
	g.tell(r)
	g.look()
}

// Stop has the guest shut down, and destroyed when its grace period is over. Only the first call counts.
func (g *Guest) Stop(now time.Time) {
	g.mu.Lock()
	if g.stop.IsZero() {
		g.stop = now
	}
	g.told = true
	g.mu.Unlock()
	g.endDump(errEnding) // it would hear nothing until that is done
	g.look()
}

// PressPower presses the power button once: somebody else keeps the time. It tells whether it had done so before.
func (g *Guest) PressPower(ctx context.Context) (again bool, err error) {
	g.endDump(errEnding) // it would hear nothing until that is done
	if err := g.driver.Act(ctx, driver.PressPower); err != nil {
		return false, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	again, g.asked = g.asked, true
	return again, nil
}

// Pause stops the guest's CPUs.
func (g *Guest) Pause(ctx context.Context) error { return g.ask(ctx, driver.Pause) }

// Resume lets a paused guest go on.
func (g *Guest) Resume(ctx context.Context) error { return g.ask(ctx, driver.Resume) }

// ask asks the guest for something whose effect is to be seen soon.
func (g *Guest) ask(ctx context.Context, act driver.Act) error {
	defer g.look()
	return g.driver.Act(ctx, act)
}

// Kill ends the guest at once, on request.
func (g *Guest) Kill(ctx context.Context, now time.Time) error {
	g.mu.Lock()
	if g.stop.IsZero() {
		g.stop = now
	}
	g.mu.Unlock()
	g.endDump(errEnding)
	defer g.look()
	return g.driver.Stop(ctx)
}

// Ask asks the guest's agent.
func (g *Guest) Ask(ctx context.Context, call driver.AgentCall) (driver.AgentInfo, error) {
	return g.driver.Agent(ctx, call)
}

// Tell makes what the guest's agent said part of the report; nil: there is no agent.
func (g *Guest) Tell(said *driver.AgentInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if reflect.DeepEqual(said, g.report.Agent) {
		return
	}
	r := g.report
	r.Agent = said
	g.tell(r)
}

// Credentials makes it part of the report that the guest has its keys and passwords, or by problem why it hasn't.
func (g *Guest) Credentials(problem string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.report
	if r.Credentials != nil && r.Credentials.Problem == Line(problem) {
		return
	}
	r.Credentials = &Credentials{Line(problem)}
	g.tell(r)
}

// Report returns what is known, and a channel that is closed when there is more.
func (g *Guest) Report() (Report, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.report, g.news
}

// look asks for a round.
func (g *Guest) look() {
	select {
	case g.wake <- struct{}{}:
	default: // one is waiting already
	}
}

// Loop does rounds until the launcher has to end, and says how.
func (g *Guest) Loop(ctx context.Context) Exit {
	timer := time.NewTimer(0)
	defer timer.Stop()
	events := g.driver.Events()
	for {
		select {
		case <-ctx.Done():
			return Exit{1, ctx.Err().Error()}
		case _, ok := <-events:
			if !ok {
				return Exit{gone, "libvirtd has ended; the guest can't be looked after any more"}
			}
		case <-g.wake:
		case <-timer.C:
		}
		p, err := g.step(ctx)
		if errors.Is(err, driver.ErrGone) {
			return Exit{gone, err.Error()}
		}
		if exit, ok := last(p); ok {
			return g.explain(exit)
		}
		if !p.Recheck.IsZero() {
			timer.Reset(time.Until(p.Recheck))
		}
	}
}

// explain prefers what was said when it happened over the general reason.
func (g *Guest) explain(e plan.Exit) Exit {
	r, _ := g.Report()
	if r.Message != "" {
		return Exit{e.Code, r.Message}
	}
	return Exit{e.Code, e.Why}
}

func last(p plan.Plan) (plan.Exit, bool) {
	if len(p.Actions) == 0 {
		return plan.Exit{}, false
	}
	e, ok := p.Actions[len(p.Actions)-1].(plan.Exit)
	return e, ok
}

// step does one round: observe, plan, act, and publish what is true afterwards.
func (g *Guest) step(ctx context.Context) (plan.Plan, error) {
	g.round.Lock()
	defer g.round.Unlock()
	state, err := g.driver.State(ctx)
	if err != nil {
		return plan.Plan{}, err
	}
	if g.refused() {
		state.Phase, state.Why = driver.Ended, driver.Failed
		return plan.For(time.Now(), g.seen(state)), nil
	}
	now := time.Now()
	p := plan.For(now, g.seen(state))
	for _, a := range p.Actions {
		slog.Info(a.String())
		if err = g.act(ctx, now, a); err != nil {
			slog.Error(a.String(), "error", Line(err.Error()))
			break
		}
	}
	after, unseen := g.driver.State(ctx)
	if unseen == nil {
		state = after
	}
	// A guest that can't be seen may run: a start may fail late, such as by its deadline.
	if err != nil && unseen == nil && state.Phase <= driver.Defined && g.gives(now, err) {
		state.Phase, state.Why = driver.Ended, driver.Failed
	}
	g.publish(state, err)
	return p, err
}

// gives tells whether the guest is given up because of an error: there will be none.
func (g *Guest) gives(now time.Time, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.tried.IsZero() {
		g.tried = now
	}
	if !plan.GivesUp(now, g.tried, err) {
		return false
	}
	g.refuse = Line(err.Error())
	g.look()
	return true
}

func (g *Guest) refused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refuse != ""
}

func (g *Guest) seen(state driver.State) plan.Seen {
	g.mu.Lock()
	defer g.mu.Unlock()
	return plan.Seen{State: state, Wanted: g.xml != "", StopSince: g.stop, Pressed: g.press, Grace: g.grace}
}

func (g *Guest) act(ctx context.Context, now time.Time, a plan.Action) error {
	switch a.(type) {
	case plan.Start:
		g.mu.Lock()
		xml, first := g.xml, g.first
		g.mu.Unlock()
		if err := g.driver.Define(ctx, xml); err != nil {
			return err
		}
		return g.driver.Start(ctx, first)
	case plan.PressPower:
		g.mu.Lock()
		g.press = now
		g.mu.Unlock()
		return g.driver.Act(ctx, driver.PressPower)
	case plan.Destroy:
		return g.driver.Stop(ctx)
	case plan.Exit:
		return nil
	}
	return fmt.Errorf("unknown action %T", a)
}

// publish tells the watchers, if there is something to tell.
func (g *Guest) publish(state driver.State, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.report
	r.Told = r.Told || g.told && r.State.Phase != driver.Ended
	r.State = state
	if err != nil {
		r.Message = Line(err.Error())
	}
	if r != g.report {
		g.tell(r)
	}
}

func (g *Guest) tell(r Report) {
	g.report = r
	close(g.news)
	g.news = make(chan struct{})
}
