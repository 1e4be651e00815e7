package subresource

import (
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"
)

const (
	// pingEvery keeps idle streams open across proxies that cut silent connections. Dead peers are found by TCP.
	pingEvery = 10 * time.Second
	// farewell is how long both ends may take to say goodbye once one of them has.
	farewell = 3 * time.Second
)

var (
	errFailed = errors.New("VMI is in failed status")
	stopping  = &websocket.CloseError{Code: websocket.CloseGoingAway, Text: "virt-api is stopping: connect again"}
)

// stream joins a client to a stream of a VMI at its node agent. The back end is dialled first, so that whatever is
// wrong there is still an HTTP answer.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, vmi *v1.VirtualMachineInstance, name string) error {
	if !websocket.IsWebSocketUpgrade(r) {
		return apierrors.NewBadRequest("this is a stream: ask for an upgrade to a websocket")
	}
	user := userOf(r.Context())
	if err := s.Streams.begin(user); err != nil {
		return err
	}
	defer s.Streams.end(user)
	leave(r.Context())
	back, err := s.Agents.Stream(r.Context(), vmi, name)
	if err != nil {
		return err
	}
	defer back.Close()
	up := websocket.Upgrader{
		HandshakeTimeout: handshakeTimeout,
		ReadBufferSize:   bufferSize,
		WriteBufferSize:  bufferSize,
		Subprotocols:     []string{protocol},
		// The origin says nothing: the API server has authenticated the caller by credentials that no page holds.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	front, err := up.Upgrade(w, r, nil)
	if err != nil {
		return nil // Upgrade has answered
	}
	defer front.Close()
	s.Streams.join(front, back)
	return nil
}

// join copies messages between two websockets until one of them ends or stop does, and hands the reason on. Who ends
// while the other side takes nothing, so that nobody reads what it says, is found by pings.
func (s *Streams) join(front, back *websocket.Conn) {
	over := make(chan *websocket.CloseError, 2)
	go func() { over <- pump(front, back, "the connection to the guest was lost") }()
	go func() { over <- pump(back, front, "the client went away") }()
	ping := time.NewTicker(s.ping)
	defer ping.Stop()
	for {
		select {
		case <-ping.C:
			if gone(front) || gone(back) {
				return // closing both ends the pumps
			}
		case reason := <-over:
			part(front, back, reason)
			await(over, 1)
			return
		case <-s.stop.Done():
			part(front, back, stopping)
			await(over, 2)
			return
		}
	}
}

// gone pings and tells whether there is nobody any more. A ping that finds no room behind data is no loss: the data keeps
// the connection open.
func gone(conn *websocket.Conn) bool {
	err := conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
	var busy net.Error
	return err != nil && !errors.Is(err, websocket.ErrCloseSent) && !(errors.As(err, &busy) && busy.Timeout())
}

// part says goodbye to both ends.
func part(front, back *websocket.Conn, reason *websocket.CloseError) {
	until := time.Now().Add(farewell)
	goodbye := websocket.FormatCloseMessage(reason.Code, reason.Text)
	_ = front.WriteControl(websocket.CloseMessage, goodbye, until)
	_ = back.WriteControl(websocket.CloseMessage, goodbye, until)
}

// await gives pumps time to read what is under way: a connection closed over unread bytes is reset, and the last lines
// would be lost with it.
func await(over <-chan *websocket.CloseError, pumps int) {
	late := time.NewTimer(farewell)
	defer late.Stop()
	for range pumps {
		select {
		case <-over:
		case <-late.C:
			return
		}
	}
}

// pump copies what arrives at src to dst until either ends, and returns why, as dst should be told.
func pump(dst, src *websocket.Conn, lost string) *websocket.CloseError {
	buffer := make([]byte, bufferSize)
	for {
		kind, r, err := src.NextReader()
		if err != nil {
			return why(err, lost)
		}
		w, err := dst.NextWriter(kind)
		if err != nil {
			return why(err, lost)
		}
		if _, err := io.CopyBuffer(w, r, buffer); err != nil {
			return why(err, lost)
		}
		if err := w.Close(); err != nil {
			return why(err, lost)
		}
	}
}

// why turns the end of a connection into a close message. Codes that may not be sent stand for a lost connection.
func why(err error, lost string) *websocket.CloseError {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		switch closed.Code {
		case websocket.CloseAbnormalClosure, websocket.CloseTLSHandshake:
		case websocket.CloseNoStatusReceived:
			return &websocket.CloseError{Code: websocket.CloseNormalClosure}
		default:
			return closed
		}
	}
	return &websocket.CloseError{Code: websocket.CloseInternalServerErr, Text: lost}
}
