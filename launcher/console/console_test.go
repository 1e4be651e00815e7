package console_test

import (
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"virtstack.io/virtstack/launcher/console"
)

// bench is a console that serves, and the paths of its two sockets.
type bench struct {
	*console.Console
	serial, clients string
}

func serve(t *testing.T) bench {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "con") // short enough for a socket
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := bench{console.New(), filepath.Join(dir, "serial"), filepath.Join(dir, "console")}
	serial, err := console.Listen(b.serial)
	must(t, err)
	clients, err := console.Listen(b.clients)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.Serve(ctx, serial, clients) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	must(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	_, err := c.Write([]byte(text))
	must(t, err)
}

// hear reads exactly what is wanted.
func hear(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	if err != nil || string(got) != want {
		t.Fatalf("got %q, %v; want %q", got[:n], err, want)
	}
}

func noise(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // never fails
	return b
}

func TestBytesGoBothWays(t *testing.T) {
	b := serve(t)
	guest, client := dial(t, b.serial), dial(t, b.clients)
	say(t, guest, "login: ")
	hear(t, client, "login: ")
	say(t, client, "root\n")
	hear(t, guest, "root\n")
}

func TestMegabytesArriveWhole(t *testing.T) {
	b := serve(t)
	guest, client := dial(t, b.serial), dial(t, b.clients)
	say(t, guest, "\n")
	hear(t, client, "\n") // attached
	sent := noise(8 << 20)
	typed := make(chan error, 1)
	go func() {
		_, err := client.Write(sent)
		typed <- err
	}()
	got := make([]byte, len(sent))
	_, err := io.ReadFull(guest, got)
	must(t, err)
	must(t, <-typed)
	if sha256.Sum256(got) != sha256.Sum256(sent) {
		t.Error("input differs")
	}
	for part := range slices.Chunk(sent, 256<<10) { // a client that reads gets every byte once
		_, err := guest.Write(part)
		must(t, err)
		hear(t, client, string(part))
	}
}

func TestNewcomerTakesOver(t *testing.T) {
	b := serve(t)
	guest, first := dial(t, b.serial), dial(t, b.clients)
	say(t, guest, "boot\n")
	hear(t, first, "boot\n")
	second := dial(t, b.clients)
	hear(t, second, "boot\n")
	rest, err := io.ReadAll(first)
	if err != nil || !strings.Contains(string(rest), "taken over") {
		t.Errorf("the first client got %q, %v; want to be told and the end", rest, err)
	}
	say(t, second, "x")
	hear(t, guest, "x")
}

func TestNewcomerSeesTheLast64KiB(t *testing.T) {
	b := serve(t)
	guest := dial(t, b.serial)
	out := noise(3 << 20)
	_, err := guest.Write(out)
	must(t, err)
	must(t, guest.Close()) // the guest reboots: what it said stays
	again := dial(t, b.serial)
	say(t, again, "end")
	want := string(out[len(out)-(64<<10)+3:]) + "end"
	if got := settled(t, b.clients, len(want), "end"); got != want {
		t.Errorf("the replay of %d bytes is not the last that the guest wrote", len(got))
	}
}

// settled reconnects until what is replayed ends as wanted: the console reads the guest's side in its own time.
func settled(t *testing.T, path string, n int, end string) string {
	t.Helper()
	buf := make([]byte, n)
	for deadline := time.Now().Add(20 * time.Second); ; {
		if time.Now().After(deadline) {
			t.Fatalf("the last of the replay is %q, want %q", buf[n-len(end):], end)
		}
		c := dial(t, path)
		if _, err := io.ReadFull(c, buf); err != nil {
			t.Fatal(err)
		}
		must(t, c.Close())
		if strings.HasSuffix(string(buf), end) {
			return string(buf)
		}
	}
}

func TestGuestNeverWaitsForAClientThatDoesNotRead(t *testing.T) {
	b := serve(t)
	guest, lazy := dial(t, b.serial), dial(t, b.clients)
	say(t, guest, "\n")
	hear(t, lazy, "\n")
	for range 64 {
		_, err := guest.Write(make([]byte, 1<<20))
		must(t, err) // the deadline of dial would show a wait
	}
	got, err := io.ReadAll(lazy)
	if err != nil || !strings.Contains(string(got), "faster than this client reads") {
		t.Errorf("got %d bytes, %v; want the reason at the end", len(got), err)
	}
	say(t, guest, "after\n")
	if got := settled(t, b.clients, 64<<10, "after\n"); len(got) != 64<<10 {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestClientsComeAndGoWhileTheGuestTalks(t *testing.T) {
	b := serve(t)
	guest := dial(t, b.serial)
	stop := make(chan struct{})
	talked := make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				talked <- nil
				return
			default:
			}
			if _, err := guest.Write(noise(4 << 10)); err != nil {
				talked <- err
				return
			}
		}
	}()
	for range 200 {
		c := dial(t, b.clients)
		_, err := io.ReadFull(c, make([]byte, 10))
		must(t, err)
		must(t, c.Close())
	}
	close(stop)
	must(t, <-talked)
}

func TestCopyFollowsTheOutput(t *testing.T) {
	b := serve(t)
	guest := dial(t, b.serial)
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.Copy(ctx, w) }()
	heard := make(chan string)
	go func() {
		var first [1]byte
		_, _ = r.Read(first[:]) // an error shows as a wrong byte
		heard <- string(first[:])
		_, _ = io.Copy(io.Discard, r) // until Copy has ended
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for got := ""; got == ""; { // Copy begins in its own time
		say(t, guest, "x")
		select {
		case got = <-heard:
			if got != "x" {
				t.Errorf("got %q", got)
			}
		case <-tick.C:
		}
	}
	cancel()
	must(t, <-done)
	must(t, w.Close())
}
