package virtctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gorilla/websocket"
	"golang.org/x/term"
)

const (
	// escape leaves a console: Ctrl-].
	escape = 0x1d
	// silence is how long a guest has to be quiet after the end of a piped input for the console to be left.
	silence = 2 * time.Second
)

// errClosed is the end of a console that the other side has closed in order.
var errClosed = errors.New("the console was closed by the other side")

// lostError is the end of a console that nobody asked for.
type lostError struct{ why string }

func (l lostError) Error() string { return "the console was closed: " + l.why }

// attach joins a console to input and output until the user leaves, or ctx or the input ends. A terminal is made raw
// and put back. Whatever else ends it is an error: errClosed
// or a lostError.
func attach(ctx context.Context, conn *websocket.Conn, in io.Reader, out io.Writer) error {
	restore, err := raw(in)
	if err != nil {
		return fmt.Errorf("preparing the terminal: %w", err)
	}
	defer restore()
	printed := make(chan struct{}, 1)
	closed, typed := make(chan error, 1), make(chan error, 1)
	go func() { closed <- show(conn, out, printed) }()
	go func() { typed <- send(conn, in) }()
	var quiet <-chan time.Time // set once the input has ended
	for {
		select {
		case err := <-closed:
			return err
		case err := <-typed:
			if !errors.Is(err, io.EOF) {
				return leave(conn, closed, err)
			}
			typed, quiet = nil, time.After(silence)
		case <-printed:
			if quiet != nil {
				quiet = time.After(silence)
			}
		case <-quiet:
			return leave(conn, closed, nil)
		case <-ctx.Done():
			return leave(conn, closed, nil)
		}
	}
}

// leave says goodbye and prints what is still under way.
func leave(conn *websocket.Conn, closed <-chan error, err error) error {
	goodbye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = conn.WriteControl(websocket.CloseMessage, goodbye, time.Now().Add(time.Second))
	select {
	case <-closed:
	case <-time.After(time.Second):
	}
	return err
}

// show prints what arrives until the connection ends, and why if that wasn't in order.
func show(conn *websocket.Conn, out io.Writer, printed chan<- struct{}) error {
	for {
		kind, message, err := conn.NextReader()
		if err != nil {
			return ending(err)
		}
		if kind != websocket.BinaryMessage {
			continue
		}
		if _, err := io.Copy(out, message); err != nil {
			return ending(err)
		}
		select {
		case printed <- struct{}{}:
		default:
		}
	}
}

func ending(err error) error {
	var c *websocket.CloseError
	switch {
	case !errors.As(err, &c):
		return lostError{err.Error()}
	case c.Code == websocket.CloseNormalClosure && c.Text == "" || c.Code == websocket.CloseNoStatusReceived:
		return errClosed
	case c.Text == "":
		return lostError{c.Error()}
	}
	return lostError{c.Text}
}

// send sends the input. It returns nil when the user leaves, and io.EOF at the end of the input.
func send(conn *websocket.Conn, in io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := in.Read(buffer)
		typed, left := buffer[:n], bytes.IndexByte(buffer[:n], escape)
		if left >= 0 {
			typed = typed[:left]
		}
		if len(typed) > 0 {
			if err := conn.WriteMessage(websocket.BinaryMessage, typed); err != nil {
				return lostError{err.Error()}
			}
		}
		if left >= 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// raw makes a terminal raw and returns how to put it back; other input stays as it is.
func raw(in io.Reader) (restore func(), err error) {
	f, ok := in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}, nil
	}
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(f.Fd()), state) }, nil
}
