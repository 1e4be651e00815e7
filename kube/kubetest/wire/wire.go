// Package wire is the way from a process under test to an API server, with what may befall it.
package wire

import (
	"errors"
	"net/http"
	"strings"
	"sync"
)

// ErrKilled is what every request of a process that was killed gets.
var ErrKilled = errors.New("the process was killed")

// Kill ends a process at one of its writes: from then on it reaches nobody, as a process that is gone doesn't.
type Kill struct {
	// At is the write at which it is killed, the first is 1.
	At int
	// Late lets that write still be done, its answer is lost.
	Late bool

	mu     sync.Mutex
	writes int
	dead   bool
}

// Killed tells whether the process has come to that write.
func (k *Kill) Killed() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.dead
}

// Wrap makes a transport the process's.
func (k *Kill) Wrap(next http.RoundTripper) http.RoundTripper { return transport{k, next} }

type transport struct {
	kill *Kill
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	dead, now := t.kill.meets(writes(r))
	if dead && !now {
		return nil, ErrKilled
	}
	resp, err := t.next.RoundTrip(r)
	if !now {
		return resp, err
	}
	if err == nil {
		err = resp.Body.Close()
	}
	return nil, errors.Join(ErrKilled, err)
}

// meets counts a request and tells whether the process is dead, and whether this is its last write, still to be done.
func (k *Kill) meets(write bool) (dead, last bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead || !write {
		return k.dead, false
	}
	k.writes++
	k.dead = k.writes == k.At
	return k.dead, k.dead && k.Late
}

// writes tells whether a request changes something: neither a read nor a dry run, nor a question that is asked by POST.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.RawQuery, "dryRun=All") &&
		!strings.Contains(r.URL.Path, "/authorization.k8s.io/") && !strings.Contains(r.URL.Path, "/authentication.k8s.io/")
}
