package console_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"virtstack.io/virtstack/ci/leak"
	"virtstack.io/virtstack/launcher/console"
)

// flood has the guest write without an end, until its console hangs up.
func flood(t *testing.T, b bench) (ended <-chan struct{}) {
	t.Helper()
	guest, err := net.Dial("unix", b.serial)
	must(t, err)
	over := make(chan struct{})
	t.Cleanup(func() {
		_ = guest.Close() // it may be closed already
		<-over
	})
	go func() {
		defer close(over)
		defer guest.Close()
		for out := noise(32 << 10); ; {
			if _, err := guest.Write(out); err != nil {
				return
			}
		}
	}()
	return over
}

// Clients that come all at once get the console one after the other: each but the last is told why it has to go, and
// none is left.
func TestManyClientsAtOnce(t *testing.T) {
	leak.Check(t)
	b := serve(t)
	flood(t, b)
	told := make(chan bool, 50)
	for range cap(told) {
		c := dial(t, b.clients)
		go func() {
			got, _ := io.ReadAll(c) // an error shows in what was read
			end := string(got[max(0, len(got)-200):])
			told <- strings.Contains(end, "taken over") || strings.Contains(end, "faster than this client reads")
		}()
	}
	dial(t, b.clients) // takes over from the last of them
	for range cap(told) {
		if !<-told {
			t.Error("a client was not told why it had to go")
		}
	}
}

// Clients that vanish in the middle of a flood, some without ever reading, leave nothing.
func TestClientsThatVanish(t *testing.T) {
	leak.Check(t)
	b := serve(t)
	flood(t, b)
	for i := range 50 {
		c := dial(t, b.clients)
		if i%2 == 0 {
			_, err := c.Read(make([]byte, 1000))
			must(t, err)
		}
		_, _ = c.Write([]byte("half a li")) // it may be taken over already
		must(t, c.Close())
	}
	_, err := io.ReadFull(dial(t, b.clients), make([]byte, 10))
	must(t, err)
}

// A launcher that ends while clients take the console from each other lets go of all of them, and of the guest.
func TestTheLauncherEndsInATakeover(t *testing.T) {
	for range 20 {
		endInATakeover(t)
	}
}

func endInATakeover(t *testing.T) {
	t.Helper()
	leak.Check(t)
	dir, err := os.MkdirTemp("/tmp", "con")
	must(t, err)
	defer os.RemoveAll(dir)
	b := bench{console.New(), filepath.Join(dir, "serial"), filepath.Join(dir, "console")}
	serial, err := console.Listen(b.serial)
	must(t, err)
	clients, err := console.Listen(b.clients)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Serve(ctx, serial, clients) }()
	over := flood(t, b)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for {
				c, err := net.Dial("unix", b.clients)
				if err != nil {
					return // the launcher has ended
				}
				_, _ = c.Read(make([]byte, 100)) // whatever comes, or the end
				_ = c.Close()
			}
		})
	}
	_, _ = dial(t, b.clients).Read(make([]byte, 1)) // it may be taken over before it reads
	cancel()
	select {
	case end := <-done:
		must(t, end)
	case <-time.After(20 * time.Second):
		t.Fatal("the console serves on")
	}
	all.Wait()
	<-over
}
