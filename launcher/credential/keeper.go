package credential

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/driver"
	"virtstack.io/virtstack/launcher/guest"
)

// pause is the least time between two looks at the Secrets, and between a failure and the next attempt.
const pause = 10 * time.Second

// Guest is whose agent is asked.
type Guest interface {
	Report() (guest.Report, <-chan struct{})
	Ask(ctx context.Context, call driver.AgentCall) (driver.AgentInfo, error)
	// Credentials tells those who watch that the guest has the credentials, or what keeps it from having them.
	Credentials(problem string)
}

// Keeper keeps a guest's keys and passwords those of the Secrets. A guest whose agent comes again has booted, and may
// have forgotten them.
type Keeper struct {
	secrets Secrets

	mu     sync.Mutex
	wanted []v1.AccessCredential

	// done are the calls that the guest's agent has answered since it came.
	done []driver.AgentCall
	next time.Time
}

// NewKeeper returns a Keeper that wants nothing yet.
func NewKeeper(secrets Secrets) *Keeper { return &Keeper{secrets: secrets} }

// Want says what the guest is to have. It is called before the guest is started.
func (k *Keeper) Want(list []v1.AccessCredential) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wanted = list
}

// Keep works until ctx ends.
func (k *Keeper) Keep(ctx context.Context, g Guest) {
	for ctx.Err() == nil {
		r, news := g.Report()
		k.mu.Lock()
		wanted := k.wanted
		k.mu.Unlock()
		switch {
		case !ByAgent(wanted), !r.State.Agent:
			k.done, k.next = nil, time.Time{}
			wait(ctx, news, nil)
			continue
		case !time.Now().Before(k.next):
			g.Credentials(k.bring(ctx, g, wanted))
			k.next = time.Now().Add(pause)
		}
		timer := time.NewTimer(time.Until(k.next))
		wait(ctx, news, timer.C)
		timer.Stop()
	}
}

func wait(ctx context.Context, news <-chan struct{}, later <-chan time.Time) {
	select {
	case <-news:
	case <-later:
	case <-ctx.Done():
	}
}

// bring asks for what the guest doesn't have yet and returns the first thing that went wrong.
func (k *Keeper) bring(ctx context.Context, g Guest, wanted []v1.AccessCredential) (problem string) {
	calls, errs := k.secrets.Calls(wanted)
	if len(errs) > 0 {
		problem = errs[0].Error()
	}
	var done []driver.AgentCall
	for _, call := range calls {
		if !k.has(call) {
			if _, err := g.Ask(ctx, call); err != nil {
				problem = first(problem, failure(call, err))
				continue
			}
		}
		done = append(done, call)
	}
	k.done = done
	return problem
}

func (k *Keeper) has(call driver.AgentCall) bool {
	for _, c := range k.done {
		if reflect.DeepEqual(c, call) {
			return true
		}
	}
	return false
}

// failure tells of a call without what is secret in it.
func failure(call driver.AgentCall, err error) string {
	user := ""
	switch c := call.(type) {
	case driver.SetKeys:
		user = c.User
	case driver.SetPassword:
		user = c.User
	}
	return guest.Line(fmt.Sprintf("user %q: %v", user, err))
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
