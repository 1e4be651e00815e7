package stream

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// pingEvery keeps an idle stream open across whatever cuts silent connections. A dead peer is found by TCP.
	pingEvery = 10 * time.Second
	// farewell is how long the peer may take to say goodbye.
	farewell = 3 * time.Second
)

// join copies bytes both ways until one side ends or stop does. Nothing is kept between the two: a peer that reads
// slowly makes the launcher wait, whose business it is not to make the guest wait.
func (s *Server) join(stop context.Context, ws *websocket.Conn, console net.Conn) {
	guestEnded, peerEnded := make(chan error, 1), make(chan error, 1)
	go func() { guestEnded <- fromGuest(ws, console) }()
	go func() { peerEnded <- toGuest(console, ws) }()
	ping := time.NewTicker(cmp.Or(s.ping, pingEvery))
	defer ping.Stop()
	for {
		select {
		case <-ping.C:
			if gone(ws) { // while the guest takes no input, nobody reads what the peer says
				console.Close()
				ws.Close()
			}
		case err := <-guestEnded:
			console.Close() // whoever has nothing more to say may not keep us waiting by not listening either
			code, text := websocket.CloseNormalClosure, ""
			if err != nil {
				code, text = websocket.CloseInternalServerErr, "the connection to the guest was lost"
			}
			part(ws, code, text, peerEnded)
			return
		case <-peerEnded:
			part(ws, websocket.CloseNormalClosure, "", nil)
			console.Close()
			ws.Close()
			<-guestEnded
			return
		case <-stop.Done():
			part(ws, websocket.CloseGoingAway, "virt-handler is stopping: connect again", peerEnded)
			console.Close()
			ws.Close()
			<-guestEnded
			return
		}
	}
}

// gone pings and tells whether there is nobody any more. A ping that finds no room behind data is no loss: the data keeps
// the connection open.
func gone(ws *websocket.Conn) bool {
	err := ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
	var busy net.Error
	return err != nil && !errors.Is(err, websocket.ErrCloseSent) && !(errors.As(err, &busy) && busy.Timeout())
}

// part says goodbye and, where ended is given, waits for the peer to: a connection closed over unread bytes is reset,
// and the last lines would be lost with it.
func part(ws *websocket.Conn, code int, text string, ended <-chan error) {
	late := time.NewTimer(farewell)
	defer late.Stop()
	_ = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(farewell))
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-late.C:
		ws.Close()
		<-ended
	}
}

// fromGuest sends what the guest prints and returns nil at the end of the launcher's stream.
func fromGuest(ws *websocket.Conn, console net.Conn) error {
	b := make([]byte, buffer)
	for {
		n, err := console.Read(b)
		if n > 0 {
			if err := ws.WriteMessage(websocket.BinaryMessage, b[:n]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// toGuest passes on what the peer types. Text messages are not part of the protocol and are left out.
func toGuest(console net.Conn, ws *websocket.Conn) error {
	b := make([]byte, buffer)
	for {
		kind, r, err := ws.NextReader()
		if err != nil {
			return err
		}
		if kind != websocket.BinaryMessage {
			continue
		}
		if _, err := io.CopyBuffer(console, r, b); err != nil {
			return err
		}
	}
}
