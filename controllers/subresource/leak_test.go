package subresource

import (
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"virtstack.io/virtstack/ci/leak"
)

// floods sends without an end, until it is hung up on.
func floods(conn *websocket.Conn) {
	go func() { _, _, _ = conn.ReadMessage() }() // answers the other's goodbye
	for out := make([]byte, 32<<10); ; {
		if conn.WriteMessage(websocket.BinaryMessage, out) != nil {
			return
		}
	}
}

// A node agent that is killed in the middle of a flood ends every console, and none of them leaves anything.
func TestAKilledNodeAgentLeavesNothing(t *testing.T) {
	leak.Check(t)
	ca := newAuthority(t)
	var mu sync.Mutex
	var open []*websocket.Conn
	s, dial := consoles(t, ca, newAgent(t, ca, "n1", func(conn *websocket.Conn) {
		mu.Lock()
		open = append(open, conn)
		mu.Unlock()
		floods(conn)
	}))
	s.Streams = NewStreams(t.Context(), StreamLimits{All: 40, User: 40})
	s.Streams.ping = 50 * time.Millisecond
	var clients []*websocket.Conn
	for range 20 {
		clients = append(clients, opened(t, dial))
	}
	for _, c := range clients {
		if _, _, err := c.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	for _, c := range open {
		c.NetConn().Close()
	}
	mu.Unlock()
	for _, c := range clients[:10] { // the others read nothing more
		if _, err := drain(c); err == nil {
			t.Error("a console of an agent that was killed goes on")
		}
	}
	s.Streams.Wait()
}

// Clients that come and vanish at once while guests flood leave nothing.
func TestClientsThatVanishInAFlood(t *testing.T) {
	leak.Check(t)
	ca := newAuthority(t)
	s, dial := consoles(t, ca, newAgent(t, ca, "n1", floods))
	s.Streams = NewStreams(t.Context(), StreamLimits{All: 40, User: 40})
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			c, _, err := dial()
			if err != nil {
				t.Error(err)
				return
			}
			_, _, _ = c.ReadMessage()
			c.NetConn().Close()
		})
	}
	all.Wait()
	s.Streams.Wait()
}
