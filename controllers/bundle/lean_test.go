package bundle

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a round asks of the API server: a revision is checked once on its way, and what is as it should be is listed, with
// neither reads nor dry runs one by one.
func TestMachinesAreLookedAtTogether(t *testing.T) {
	const machines = 20
	x := start(t)
	x.grant("virtualmachines")
	no := false
	x.bundle.Spec.Wait = &no
	for i := range machines {
		x.repo.Commit(fmt.Sprintf("vm-%d.yaml", i), strings.Replace(machine, "web", fmt.Sprintf("vm-%d", i), 1))
	}
	x.create(x.bundle)
	var asked []string
	var mu sync.Mutex
	x.controller = x.process(func(next http.RoundTripper) http.RoundTripper {
		return asking(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/virtualmachines") {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, r.Method+" "+r.URL.Query().Get("dryRun"))
			}
			return next.RoundTrip(r)
		})
	})
	x.settle()
	count := func(what string) (n int) {
		for _, a := range asked {
			if a == what {
				n++
			}
		}
		return n
	}
	if dry, writes := count("PATCH All"), count("PATCH "); dry != machines || writes != machines {
		t.Errorf("the first apply: %d dry runs and %d writes, want %d each", dry, writes, machines)
	}
	asked = nil
	x.now = x.now.Add(10 * time.Minute)
	x.settle()
	if len(asked) != 1 || asked[0] != "GET " {
		t.Errorf("unchanged: asked %q, want one list", asked)
	}
	asked = nil
	x.repo.Commit("vm-3.yaml", strings.NewReplacer("web", "vm-3", "Halted", "Manual").Replace(machine))
	x.now = x.now.Add(10 * time.Minute)
	x.settle()
	if dry, writes, reads := count("PATCH All"), count("PATCH "), count("GET "); dry != 1 || writes != 1 || reads > 3 {
		t.Errorf("one changed: %d dry runs, %d writes and %d reads, want 1, 1 and at most 3", dry, writes, reads)
	}
}

type asking func(*http.Request) (*http.Response, error)

func (a asking) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }
