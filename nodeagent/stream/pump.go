package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

// pump copies bytes both ways until one side ends, and closes both. An orderly end is no error.
func pump(ctx context.Context, client *websocket.Conn, guest net.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { hangUp(client, guest) })
	defer stop()
	ended := make(chan error, 2)
	go func() { ended <- toGuest(client, guest) }()
	go func() { ended <- toClient(ctx, client, guest) }()
	first := <-ended
	cancel()
	hangUp(client, guest)
	<-ended
	return first
}

// hangUp tells the client that the stream is over and closes both ends; it may be called twice.
func hangUp(client *websocket.Conn, guest net.Conn) {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = client.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
	_ = client.Close()
	_ = guest.Close()
}

// toGuest copies what the client sends in binary messages. Pongs keep an idle client alive.
func toGuest(client *websocket.Conn, guest net.Conn) error {
	alive := func(string) error { return client.SetReadDeadline(time.Now().Add(silence)) }
	client.SetPongHandler(alive)
	if err := alive(""); err != nil {
		return err
	}
	for {
		kind, r, err := client.NextReader()
		if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		if kind != websocket.BinaryMessage {
			continue // contract: text is ignored
		}
		if _, err := io.Copy(guest, r); err != nil {
			return err
		}
		if err := alive(""); err != nil {
			return err
		}
	}
}

// toClient copies what the guest prints, and pings while ctx lives.
func toClient(ctx context.Context, client *websocket.Conn, guest net.Conn) error {
	go ping(ctx, client)
	chunk := make([]byte, buffer)
	for {
		n, err := guest.Read(chunk)
		if n > 0 {
			if err := client.WriteMessage(websocket.BinaryMessage, chunk[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func ping(ctx context.Context, client *websocket.Conn) {
	tick := time.NewTicker(pingTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if client.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second)) != nil {
				return
			}
		}
	}
}
