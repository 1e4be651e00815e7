package subresource

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// hold serves requests that stay under way until the test ends, and says when one has begun.
func hold(t *testing.T) (http.Handler, <-chan struct{}) {
	begun, over := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(over) })
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stream" {
			leave(r.Context())
		}
		begun <- struct{}{}
		<-over
	}), begun
}

func upgrading(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "websocket")
	return r
}

// A header is no way past the limit: only a stream that is counted as one gives its slot back.
func TestRequestsThatAskForAnUpgradeAreLimited(t *testing.T) {
	next, begun := hold(t)
	limit := limited(1, next)
	for range 3 {
		go limit.ServeHTTP(httptest.NewRecorder(), upgrading("/stream"))
		<-begun
	}
	go limit.ServeHTTP(httptest.NewRecorder(), upgrading("/start"))
	<-begun
	w := httptest.NewRecorder()
	limit.ServeHTTP(w, upgrading("/start"))
	if got := statusOf(t, w); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(got.Message, "1 requests at a time") {
		t.Errorf("one request more than allowed: HTTP %d %q", w.Code, got.Message)
	}
}

func TestARequestThatIsOverMakesRoom(t *testing.T) {
	limit := limited(1, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leave(r.Context()) }))
	for range 3 {
		w := httptest.NewRecorder()
		if limit.ServeHTTP(w, upgrading("/stream")); w.Code != http.StatusOK {
			t.Errorf("one after the other: HTTP %d", w.Code)
		}
	}
}

func TestStreamsAreLimitedForAllAndForEach(t *testing.T) {
	s := NewStreams(context.Background(), StreamLimits{All: 3, User: 2})
	ask := func(user, want string) {
		t.Helper()
		switch err := s.begin(user); {
		case want == "" && err != nil:
			t.Errorf("%s: %v", user, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", user, err, want)
		}
	}
	ask("ann", "")
	ask("ann", "")
	ask("ann", `2 streams open for one user: close a console of user "ann"`)
	ask("bob", "")
	ask("bob", "3 streams open at a time")
	s.end("ann")
	ask("bob", "")
	s.end("ann")
	s.end("bob")
	s.end("bob")
	s.Wait()
	if len(s.users) != 0 {
		t.Errorf("users without streams are remembered: %v", s.users)
	}
}
