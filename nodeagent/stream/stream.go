// Package stream carries console bytes between virt-api and the launchers of this node: an HTTPS server that only
// virt-api may talk to, whose websockets end in a unix socket of the launcher.
package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"virtstack.io/virtstack/kube/identity"
)

// Errors of a Dialer that have an HTTP answer of their own; all others are 500.
var (
	ErrNotHere    = errors.New("no such VirtualMachineInstance on this node") // 404
	ErrNotRunning = errors.New("the guest is not running")                    // 409
)

// limits of the server. Subprotocol and buffer size: contract of KubeVirt's streams.
const (
	subprotocol = "plain.kubevirt.io"
	buffer      = 10240
	maxStreams  = 512
	handshake   = 10 * time.Second
	// A peer that answers no ping for this long is gone.
	silence  = 90 * time.Second
	pingTime = 30 * time.Second
)

// Dialer connects to the console of a guest's first serial port.
type Dialer func(ctx context.Context, vmi types.NamespacedName) (net.Conn, error)

// Server serves GET /v1/namespaces/{ns}/virtualmachineinstances/{name}/console. It satisfies manager.Runnable.
type Server struct {
	Addr    string
	Source  identity.Source
	Console Dialer
}

// Start serves until ctx ends; streams are then closed.
func (s *Server) Start(ctx context.Context) error {
	server := &http.Server{
		Addr:    s.Addr,
		Handler: s.Handler(ctx),
		TLSConfig: identity.Server(s.Source, func(p identity.Peer) error {
			if p != (identity.Peer{Role: identity.RoleAPI}) {
				return fmt.Errorf("%w: %s, want %s", identity.ErrPeer, p, identity.RoleAPI)
			}
			return nil
		}),
		ReadHeaderTimeout: handshake,
		MaxHeaderBytes:    16 << 10,
	}
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stopped()
	if err := server.ListenAndServeTLS("", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving streams: %w", err)
	}
	return nil
}

// Handler is the server's; streams end with ctx.
func (s *Server) Handler(ctx context.Context) http.Handler {
	slots := make(chan struct{}, maxStreams)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/namespaces/{namespace}/virtualmachineinstances/{name}/console", func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			s.console(ctx, w, r)
		default:
			http.Error(w, "too many streams on this node", http.StatusServiceUnavailable)
		}
	})
	return mux
}

// console reaches the guest before it upgrades, so that a failure is still a plain HTTP answer.
func (s *Server) console(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	vmi := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	dial, cancel := context.WithTimeout(r.Context(), handshake)
	defer cancel()
	guest, err := s.Console(dial, vmi)
	if err != nil {
		http.Error(w, fmt.Sprintf("opening the console of VMI %s: %v", vmi, err), code(err))
		return
	}
	defer guest.Close()
	upgrade := websocket.Upgrader{
		HandshakeTimeout: handshake, ReadBufferSize: buffer, WriteBufferSize: buffer,
		Subprotocols: []string{subprotocol}, CheckOrigin: func(*http.Request) bool { return true },
	}
	client, err := upgrade.Upgrade(w, r, nil)
	if err != nil {
		return // answered by the upgrade
	}
	defer client.Close()
	if err := pump(ctx, client, guest); err != nil {
		log.FromContext(ctx).Info("console ended", "vmi", vmi, "reason", err.Error())
	}
}

func code(err error) int {
	switch {
	case errors.Is(err, ErrNotHere):
		return http.StatusNotFound
	case errors.Is(err, ErrNotRunning):
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}
