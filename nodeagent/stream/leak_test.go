package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/types"

	"virtstack.io/virtstack/ci/leak"
)

// isOver fails the test if a stream is held although its time to say goodbye is long past.
func isOver(t *testing.T, s *Server) {
	t.Helper()
	over := make(chan struct{})
	go func() { s.open.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(4 * farewell):
		t.Error("the stream is held")
	}
}

// launchers listens as a launcher does; each caller is served by do.
func launchers(t *testing.T, do func(*net.UnixConn)) func(context.Context, types.UID) (net.Conn, error) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "st") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "console")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(l.Close(), os.RemoveAll(dir)) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go do(c.(*net.UnixConn))
		}
	}()
	return func(ctx context.Context, _ types.UID) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
}

// floods writes without an end, until the other side hangs up.
func floods(c *net.UnixConn) {
	defer c.Close()
	for out := make([]byte, 32<<10); ; {
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

func TestClientsThatVanishInAFloodLeaveNothing(t *testing.T) {
	leak.Check(t)
	s, url, _ := serve(t, launchers(t, floods))
	for i := range 20 {
		c := open(t, url)
		if i%2 == 0 {
			if _, _, err := c.ReadMessage(); err != nil {
				t.Fatal(err)
			}
		}
		c.NetConn().Close()
	}
	s.open.Wait()
}

// A node agent that stops lets go of clients that read nothing, in bounded time.
func TestAStopInAFloodLeavesNothing(t *testing.T) {
	leak.Check(t)
	s, url, stop := serve(t, launchers(t, floods))
	for range 10 {
		open(t, url)
	}
	stop()
	begun := time.Now()
	s.open.Wait()
	if took := time.Since(begun); took > 3*farewell {
		t.Errorf("streams ended %s after the stop", took)
	}
}

// A launcher that says goodbye but takes no more input holds up nobody: it stands next to a hostile guest.
func TestALauncherThatNeitherReadsNorWritesHoldsNothing(t *testing.T) {
	leak.Check(t)
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	s, url, _ := serve(t, launchers(t, func(c *net.UnixConn) {
		defer c.Close()
		_, _ = io.ReadFull(c, make([]byte, 1))
		_ = c.CloseWrite()
		<-held
	}))
	c := open(t, url)
	for range 200 { // far more than the socket takes
		if err := c.WriteMessage(websocket.BinaryMessage, make([]byte, 64<<10)); err != nil {
			break // it was closed in the middle
		}
	}
	isOver(t, s)
}

// Nor does a client that vanishes while a guest, paused perhaps, takes no more input.
func TestAClientThatVanishesBeforeADeafGuest(t *testing.T) {
	leak.Check(t)
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	s, url, _ := serve(t, launchers(t, func(c *net.UnixConn) {
		defer c.Close()
		<-held
	}))
	s.ping = 50 * time.Millisecond
	c := open(t, url)
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for err := error(nil); err == nil; { // until nothing more fits
		err = c.WriteMessage(websocket.BinaryMessage, make([]byte, 64<<10))
	}
	c.NetConn().Close()
	isOver(t, s)
}
