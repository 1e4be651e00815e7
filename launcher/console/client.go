package console

import (
	"context"
	"net"
	"sync"
	"time"
)

// client is who looks and types.
type client struct {
	conn   net.Conn
	once   sync.Once
	gone   context.Context // done when it has been sent away or has left
	leave  context.CancelFunc
	reason string // read after gone
}

// dismiss sends the client away; the first reason counts.
func (l *client) dismiss(reason string) {
	l.once.Do(func() {
		l.reason = reason
		// A write that hangs on a client which doesn't read must end, for the reason to be sent.
		_ = l.conn.SetDeadline(time.Now().Add(farewell)) // fails only on a closed connection
		l.leave()
	})
}

// attend serves a client until it leaves, is too slow, or another one comes.
func (c *Console) attend(ctx context.Context, conn net.Conn) {
	l := &client{conn: conn}
	l.gone, l.leave = context.WithCancel(context.Background())
	end := context.AfterFunc(ctx, func() { l.dismiss("") })
	defer end()
	from := c.replace(l)
	var all sync.WaitGroup
	all.Go(func() { c.listen(l) })
	c.show(l, from)
	_, _ = conn.Write([]byte(l.reason)) // the client may be gone
	_ = conn.Close()
	all.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == l {
		c.client = nil
	}
}

// replace makes l the client, and returns the offset from which on it is to see the guest's output.
func (c *Console) replace(l *client) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.client.dismiss(takenOver)
	}
	c.client = l
	return max(c.output.start(), c.output.end-replayed)
}

// listen passes on what the client types.
func (c *Console) listen(l *client) {
	buf := make([]byte, chunk)
	for {
		n, err := l.conn.Read(buf)
		if n > 0 {
			select {
			case c.input <- append([]byte(nil), buf[:n]...):
			case <-l.gone.Done():
				return
			}
		}
		if err != nil {
			l.dismiss("")
			return
		}
	}
}

// show writes the guest's output to the client until the client is to go.
func (c *Console) show(l *client, from int64) {
	buf := make([]byte, chunk)
	for {
		n, at := c.next(l.gone, buf, from)
		if n == 0 {
			return
		}
		if at != from {
			l.dismiss(tooSlow)
			return
		}
		from += int64(n)
		if _, err := l.conn.Write(buf[:n]); err != nil {
			l.dismiss("")
			return
		}
	}
}
