// Package agent asks the agent in the guest what system runs there. A guest may say anything, as often as it likes: what
// goes on from here is bounded in count, bytes and time.
package agent

import (
	"context"
	"log/slog"
	"time"

	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/guest"
)

// How often an agent is asked. A guest that changes what it says all the time is reported once in pause at most, and
// each report may become a write of the VMI's status.
const (
	// pause is the least time between two questions.
	pause = 5 * time.Second
	// calm is the time between two questions to a guest that has told its addresses.
	calm = 30 * time.Second
	// misses is how many questions in a row have to fail before the agent is reported as lost: each reboot of the guest
	// takes it away for a moment.
	misses = 3
)

// Guest is whose agent is asked.
type Guest interface {
	Report() (guest.Report, <-chan struct{})
	Ask(ctx context.Context, call driver.AgentCall) (driver.AgentInfo, error)
	// Tell tells those who watch what the agent said; nil: there is no agent.
	Tell(said *driver.AgentInfo)
}

// Watch asks until ctx ends.
func Watch(ctx context.Context, g Guest) {
	missed := 0
	for ctx.Err() == nil {
		r, news := g.Report()
		switch {
		case !r.State.Agent && r.Agent == nil: // not yet, or not any more
			select {
			case <-news:
			case <-ctx.Done():
			}
			continue
		case ask(ctx, g):
			missed = 0
		default:
			missed++
		}
		if missed >= misses {
			g.Tell(nil)
			missed = 0
		}
		r, _ = g.Report()
		wait(ctx, r)
	}
}

func ask(ctx context.Context, g Guest) bool {
	info, err := g.Ask(ctx, driver.AskSystem{})
	if err != nil {
		slog.Debug("the guest's agent", "error", guest.Line(err.Error()))
		return false
	}
	said := Bound(info)
	g.Tell(&said)
	return true
}

func wait(ctx context.Context, r guest.Report) {
	next := pause
	if r.State.Agent && r.Agent != nil && addressed(*r.Agent) {
		next = calm
	}
	timer := time.NewTimer(next)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// addressed is true for a guest that has an address by which others can reach it.
func addressed(info driver.AgentInfo) bool {
	for _, i := range info.Interfaces {
		if i.Name != "lo" && len(i.Addresses) > 0 {
			return true
		}
	}
	return false
}
