package metrics

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"
)

// The one request that a guest may make, and the answer to any other. Requests and answers end with an empty line.
const (
	request = "GET /metrics/XML"
	refusal = "INVALID REQUEST"
)

// longest is how many bytes of a line are looked at: what a guest says is read, never kept.
const longest = 256

// redial is how long QEMU may take to listen, or to listen again.
const redial = time.Second

// Serve answers the guest behind a socket on which QEMU listens, until ctx ends. report is asked for each answer; an
// error refuses it.
func Serve(ctx context.Context, socket string, report func() ([]byte, error)) {
	again := time.NewTicker(redial)
	defer again.Stop()
	for {
		if conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket); err == nil {
			hangUp := context.AfterFunc(ctx, func() { conn.Close() })
			_ = Answer(conn, report) // the guest is gone, or QEMU is
			hangUp()
			conn.Close()
		}
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// Answer answers requests until the other side hangs up.
func Answer(conn io.ReadWriter, report func() ([]byte, error)) error {
	in := bufio.NewReaderSize(conn, longest)
	asked := ""
	for {
		line, err := read(in)
		if err != nil {
			return err
		}
		if line != "" {
			asked = line
			continue
		}
		if err := answer(conn, asked, report); err != nil {
			return err
		}
		asked = ""
	}
}

func answer(out io.Writer, asked string, report func() ([]byte, error)) error {
	said := []byte(refusal)
	if asked == request {
		r, err := report()
		if err == nil {
			said = r
		} else {
			slog.Error("telling the guest of its node", "error", err)
		}
	}
	_, err := fmt.Fprintf(out, "%s\n\n", said)
	return err
}

// read returns a line without its end; of one that is too long, the start.
func read(in *bufio.Reader) (string, error) {
	line, cut, err := in.ReadLine()
	text := string(line)
	for cut && err == nil {
		_, cut, err = in.ReadLine()
	}
	return text, err
}
