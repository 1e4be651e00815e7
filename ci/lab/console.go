package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// Console is a serial console opened by virtctl, driven as expect(1) does.
type Console struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	mu   sync.Mutex
	all  bytes.Buffer
	read int // what Expect has consumed
	done chan struct{}
	err  error
}

// Console opens the serial console of a VMI. Close it.
func (l *Lab) Console(ctx context.Context, namespace, name string) (*Console, error) {
	c := &Console{cmd: l.Command(ctx, "virtctl", "console", "-n", namespace, name), done: make(chan struct{})}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.cmd.Stdout, c.cmd.Stderr = in, c, c
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// Write takes what virtctl prints.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.Write(p)
}

// Send types text.
func (c *Console) Send(text string) error {
	_, err := io.WriteString(c.in, text)
	return err
}

// Expect waits until text is printed after what the last Expect found. It doesn't wait for a virtctl that has ended.
func (c *Console) Expect(ctx context.Context, text string, limit time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return Until(ctx, limit, fmt.Sprintf("%q on the console", text), func(context.Context) (bool, string, error) {
		ended := c.ended()
		found, rest := c.find(text)
		if !found && ended {
			cancel()
			return false, fmt.Sprintf("virtctl has ended (%v), its last words: %q", c.err, rest), nil
		}
		return found, fmt.Sprintf("%q", rest), nil
	})
}

func (c *Console) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// find moves on behind text if it is there, and returns the end of what wasn't read yet otherwise.
func (c *Console) find(text string) (bool, []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest := c.all.Bytes()[c.read:]
	if at := bytes.Index(rest, []byte(text)); at >= 0 {
		c.read += at + len(text)
		return true, nil
	}
	return false, bytes.Clone(rest[max(0, len(rest)-500):])
}

// Output is everything printed so far.
func (c *Console) Output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.String()
}

// Done is closed when virtctl has ended; Err then says how.
func (c *Console) Done() <-chan struct{} { return c.done }

// Err is how virtctl ended.
func (c *Console) Err() error { return c.err }

// Close ends virtctl.
func (c *Console) Close() error {
	err := c.in.Close()
	select {
	case <-c.done:
	case <-time.After(5 * time.Second):
		_ = c.cmd.Process.Kill()
		<-c.done
	}
	return err
}
