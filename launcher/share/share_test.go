package share

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"virtstack.io/virtstack/launcher/disk"
)

// asDaemon makes this binary a program that tells the first to connect how it was started, and ends.
const asDaemon = "SHARE_TEST_DAEMON"

func TestMain(m *testing.M) {
	if os.Getenv(asDaemon) == "" {
		os.Exit(m.Run())
	}
	l, err := net.FileListener(os.NewFile(3, "listening"))
	if err != nil {
		os.Exit(2)
	}
	conn, err := l.Accept()
	if err != nil {
		os.Exit(2)
	}
	fmt.Fprintln(conn, strings.Join(os.Args[1:], " "))
	os.Exit(0)
}

func server(t *testing.T) *Server {
	t.Helper()
	t.Setenv(asDaemon, "yes")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "share") // short: it becomes the path of sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return &Server{Dir: dir, Log: io.Discard, program: self}
}

// ask returns how the program behind a socket was started.
func ask(t *testing.T, socket string) string {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}

func TestEachDirectoryIsServedOnASocket(t *testing.T) {
	s := server(t)
	long := strings.Repeat("a", 63)
	shares := map[string]disk.Share{"data": {Dir: "/claims/data"}, long: {Dir: "/secrets/x", ReadOnly: true}}
	first, err := s.Serve(t.Context(), shares)
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Serve(t.Context(), shares)
	if err != nil || again["data"] != first["data"] || filepath.Dir(first[long]) != s.Dir || len(first) != 2 {
		t.Fatalf("got %v, then %v, %v", first, again, err)
	}
	if said := ask(t, first["data"]); !strings.Contains(said, "--shared-dir=/claims/data ") || strings.Contains(said, "--readonly") {
		t.Errorf("data is served by %s", said)
	}
	if said := ask(t, first[long]); !strings.Contains(said, "--shared-dir=/secrets/x ") || !strings.Contains(said, "--readonly") {
		t.Errorf("what only may be read is served by %s", said)
	}
}

func TestADirectoryWhoseProgramHasEndedIsServedAgain(t *testing.T) {
	s := server(t)
	shares := map[string]disk.Share{"data": {Dir: "/claims/data"}}
	for range 2 {
		sockets, err := s.Serve(t.Context(), shares)
		if err != nil {
			t.Fatal(err)
		}
		ask(t, sockets["data"])
		ended(t, s)
	}
}

func ended(t *testing.T, s *Server) {
	t.Helper()
	tick, deadline := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for {
		s.mu.Lock()
		serving := s.serving["data"]
		s.mu.Unlock()
		if !serving {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it never ended")
		}
	}
}

func TestAProgramThatIsNotThereIsToldWithItsVolume(t *testing.T) {
	s := server(t)
	s.program = s.Dir + "/none"
	if _, err := s.Serve(t.Context(), map[string]disk.Share{"data": {}}); err == nil || !strings.HasPrefix(err.Error(), "serving volume data: ") {
		t.Errorf("got %v", err)
	}
}
