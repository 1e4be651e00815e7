// Package console stands between the guest's serial port and the people who look at it. It always reads what the guest
// writes, so that the guest never waits for a reader; it keeps the last of it for whoever comes next; and it lets one
// client at a time look and type.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

const (
	// kept bytes of the guest's output: how far a client may fall behind. Memory is used only once it was written.
	kept = 1 << 20
	// replayed bytes are what a new client sees of what was before.
	replayed = 64 << 10
	chunk    = 16 << 10
	// farewell is how long a client that is sent away has to take the reason.
	farewell = time.Second

	takenOver = "\r\nconsole taken over by another client\r\n"
	tooSlow   = "\r\nconsole closed: the guest writes faster than this client reads; connect again for what is new\r\n"
)

// Console is one serial port and its client.
type Console struct {
	input chan []byte

	mu     sync.Mutex
	output ring
	more   chan struct{} // closed and replaced when output or serial has changed
	serial net.Conn      // QEMU's side; nil: not there
	client *client
}

// New returns a console without a guest and without a client.
func New() *Console {
	return &Console{input: make(chan []byte), output: ring{buf: make([]byte, kept)}, more: make(chan struct{})}
}

// Listen opens a unix socket that only this user and root can reach, in place of one that an earlier run left.
func Listen(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing an old socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close() // the first error tells more
		return nil, err
	}
	return l, nil
}

// Serve takes QEMU's connections from serial and clients from clients until ctx ends, and closes both. QEMUs come one
// after the other: what one wrote is read to its end before the next is listened to. Of clients the newest counts.
func (c *Console) Serve(ctx context.Context, serial, clients net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _, _ = serial.Close(), clients.Close() }) // an error tells nothing new
	defer stop()
	var all sync.WaitGroup
	all.Go(func() { c.pump(ctx) })
	var errs [2]error
	all.Go(func() { defer cancel(); errs[0] = accept(ctx, serial, func(conn net.Conn) { c.drain(ctx, conn) }) })
	all.Go(func() {
		defer cancel()
		errs[1] = accept(ctx, clients, func(conn net.Conn) { all.Go(func() { c.attend(ctx, conn) }) })
	})
	all.Wait()
	return errors.Join(errs[:]...)
}

// accept serves one connection after the other until ctx ends.
func accept(ctx context.Context, l net.Listener, serve func(net.Conn)) error {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil && ctx.Err() != nil:
			return conn.Close() // it came too late
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("accepting on %s: %w", l.Addr(), err)
		}
		serve(conn)
	}
}

// drain reads the guest's output as fast as it comes, whoever else is there.
func (c *Console) drain(ctx context.Context, conn net.Conn) {
	hangUp := context.AfterFunc(ctx, func() { _ = conn.Close() }) // its reader sees the end
	defer hangUp()
	c.attach(conn)
	defer c.attach(nil)
	defer conn.Close() // an error tells nothing new: it has ended
	buf := make([]byte, chunk)
	for {
		n, err := conn.Read(buf)
		c.mu.Lock()
		c.output.write(buf[:n])
		c.changed()
		c.mu.Unlock()
		if err != nil {
			return // QEMU has ended
		}
	}
}

// attach makes conn the guest's port; nil: there is none.
func (c *Console) attach(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serial = conn
	c.changed()
}

// changed wakes all who wait for more; the lock must be held.
func (c *Console) changed() {
	close(c.more)
	c.more = make(chan struct{})
}

// pump writes what clients type to the guest. A guest that doesn't read keeps it, and so clients, waiting.
func (c *Console) pump(ctx context.Context) {
	for {
		select {
		case b := <-c.input:
			if conn := c.guest(ctx); conn != nil {
				_, _ = conn.Write(b) // a guest that ends takes its input along
			}
		case <-ctx.Done():
			return
		}
	}
}

// guest waits for a guest and returns its port; nil: ctx has ended.
func (c *Console) guest(ctx context.Context) net.Conn {
	for {
		c.mu.Lock()
		conn, more := c.serial, c.more
		c.mu.Unlock()
		if conn != nil {
			return conn
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		}
	}
}

// Copy writes the guest's output to w from now on until ctx ends or w fails. Output that w takes too slowly is left out.
func (c *Console) Copy(ctx context.Context, w io.Writer) error {
	c.mu.Lock()
	from := c.output.end
	c.mu.Unlock()
	buf := make([]byte, chunk)
	for {
		n, at := c.next(ctx, buf, from)
		if n == 0 {
			return nil
		}
		from = at + int64(n)
		if _, err := w.Write(buf[:n]); err != nil {
			return fmt.Errorf("copying the console: %w", err)
		}
	}
}

// next waits for output from an offset on and copies it. It returns how much it copied and from where: later than from
// when that is no longer kept; nothing when ctx has ended.
func (c *Console) next(ctx context.Context, buf []byte, from int64) (n int, at int64) {
	for ctx.Err() == nil {
		c.mu.Lock()
		at = max(from, c.output.start())
		n = c.output.read(buf, at)
		more := c.more
		c.mu.Unlock()
		if n > 0 {
			return n, at
		}
		select {
		case <-more:
		case <-ctx.Done():
		}
	}
	return 0, from
}
