package lab

import (
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// free returns an address of this machine that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The Git server is started once; a repository that is pushed to it can be cloned from it.
func TestTheGitServerIsStartedOnce(t *testing.T) {
	l, err := Here()
	if err != nil {
		t.Fatal(err)
	}
	addr, root := free(t), filepath.Join(t.TempDir(), "git")
	for range 2 {
		if err := l.startGitServer(t.Context(), addr, root); err != nil {
			t.Fatal(err)
		}
	}
	found := Processes("gitserver", root)
	for _, p := range found {
		if err := syscall.Kill(p.PID, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	if len(found) != 1 {
		t.Errorf("got servers %v, want one", found)
	}
}

// What else listens on the port is never taken for the Git server: another's repositories, another program, one that
// says nothing.
func TestAnotherListenerIsNotTheGitServer(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Git-Project-Root", "/elsewhere") }))
	t.Cleanup(other.Close)
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() }) // the test has its verdict
	for addr, want := range map[string]string{
		web.Listener.Addr().String():   "taken by another program",
		other.Listener.Addr().String(): "it is the Git server of /elsewhere",
		mute.Addr().String():           "deadline exceeded",
	} {
		begin := time.Now()
		err := (&Lab{Root: t.TempDir()}).startGitServer(t.Context(), addr, "/here")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), addr) {
			t.Errorf("got %v, want %q and %s in it", err, want, addr)
		}
		if took := time.Since(begin); took > 20*time.Second {
			t.Errorf("%s: it took %s", addr, took)
		}
	}
}
