package stream_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/types"

	"virtstack.io/virtstack/nodeagent/stream"
)

func serve(t *testing.T, d stream.Dialer) string {
	t.Helper()
	s := &stream.Server{Console: d}
	server := httptest.NewServer(s.Handler(t.Context()))
	t.Cleanup(server.Close)
	return server.URL + "/v1/namespaces/ns/virtualmachineinstances/web/console"
}

func open(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{"plain.kubevirt.io"}}
	c, _, err := d.Dial("ws"+strings.TrimPrefix(url, "http"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestBytesFlowBothWays(t *testing.T) {
	ours, theirs := net.Pipe()
	url := serve(t, func(_ context.Context, vmi types.NamespacedName) (net.Conn, error) {
		if vmi.String() != "ns/web" {
			return nil, fmt.Errorf("asked for %s", vmi)
		}
		return theirs, nil
	})
	go func() { _, _ = io.Copy(ours, ours) }() // the guest echoes
	c := open(t, url)
	sent := make([]byte, 3<<20)
	chacha := rand.NewChaCha8([32]byte{1})
	_, _ = chacha.Read(sent)
	go func() {
		for part := range chunks(sent, 9000) {
			_ = c.WriteMessage(websocket.BinaryMessage, part)
		}
	}()
	var got []byte
	for len(got) < len(sent) {
		_, part, err := c.ReadMessage()
		if err != nil {
			t.Fatalf("after %d bytes: %v", len(got), err)
		}
		got = append(got, part...)
	}
	if !bytes.Equal(got, sent) {
		t.Error("other bytes came back than were sent")
	}
}

func chunks(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

func TestEndOfTheGuestClosesNormally(t *testing.T) {
	ours, theirs := net.Pipe()
	c := open(t, serve(t, func(context.Context, types.NamespacedName) (net.Conn, error) { return theirs, nil }))
	ours.Close()
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("got %v, want a normal close", err)
	}
}

func TestFailuresArePlainAnswers(t *testing.T) {
	for want, err := range map[int]error{
		http.StatusNotFound: stream.ErrNotHere, http.StatusConflict: stream.ErrNotRunning, http.StatusInternalServerError: errors.New("no socket"),
	} {
		url := serve(t, func(context.Context, types.NamespacedName) (net.Conn, error) { return nil, err })
		resp, getErr := http.Get(url)
		if getErr != nil {
			t.Fatal(getErr)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || !strings.Contains(string(body), "ns/web") {
			t.Errorf("%v: got %d %q, want %d and the VMI's name", err, resp.StatusCode, body, want)
		}
	}
}
