package subresource

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// slotKey is the key of a request's slot in its context.
type slotKey struct{}

// limited answers 429 where more than limit requests are under way. A request counts until it ends or has become a
// stream, whatever its headers say that it wants to become.
func limited(limit int, next http.Handler) http.Handler {
	free := make(chan struct{}, limit)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case free <- struct{}{}:
			leave := sync.OnceFunc(func() { <-free })
			defer leave()
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), slotKey{}, leave)))
		default:
			writeError(w, apierrors.NewTooManyRequests(fmt.Sprintf("virt-api serves %d requests at a time: too many; try again later", limit), 1))
		}
	})
}

// leave ends the counting of a request that goes on as a stream, which is counted as such.
func leave(ctx context.Context) {
	if leave, ok := ctx.Value(slotKey{}).(func()); ok {
		leave()
	}
}

// StreamLimits say how many streams may be open at a time.
type StreamLimits struct {
	// All is of the whole process, User of each user: one that opens too many leaves room for others.
	All, User int
}

// Streams are the open streams of this process: they are counted, and told when it stops.
type Streams struct {
	limits StreamLimits
	stop   context.Context
	ping   time.Duration // between two pings of a stream
	open   sync.WaitGroup

	mu    sync.Mutex
	all   int
	users map[string]int
}

// NewStreams counts streams up to limits. All of them end soon after stop does.
func NewStreams(stop context.Context, limits StreamLimits) *Streams {
	return &Streams{limits: limits, stop: stop, ping: pingEvery, users: map[string]int{}}
}

// begin counts one stream more, or refuses it with HTTP status 429. Each begin that succeeds takes one end.
func (s *Streams) begin(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= s.limits.All:
		return apierrors.NewTooManyRequests(fmt.Sprintf("virt-api keeps %d streams open at a time: too many consoles are open; try again later", s.limits.All), 10)
	case s.users[user] >= s.limits.User:
		return apierrors.NewTooManyRequests(fmt.Sprintf("virt-api keeps %d streams open for one user: close a console of user %q, then try again", s.limits.User, user), 10)
	}
	s.all++
	s.users[user]++
	s.open.Add(1)
	return nil
}

func (s *Streams) end(user string) {
	s.mu.Lock()
	s.all--
	if s.users[user]--; s.users[user] == 0 {
		delete(s.users, user)
	}
	s.mu.Unlock()
	s.open.Done()
}

// Wait returns when all streams have ended.
func (s *Streams) Wait() { s.open.Wait() }
