// Package stream serves the byte streams of this node's guests to virt-api, and what it asks of them, over mutual TLS.
package stream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/nodeagent/guest"
	"virtstack.io/virtstack/nodeagent/guest/plan"
)

// Protocol is the websocket subprotocol of byte streams.
const Protocol = "plain.kubevirt.io"

const (
	handshakeTimeout = 10 * time.Second
	// buffer of a websocket, in bytes.
	buffer = 10240
	// limit is how many streams may be open; each holds two buffers and two goroutines.
	limit = 256
)

// Server serves the streams.
type Server struct {
	Node    string
	Address string
	// Cache has the VMIs and launcher Pods of this node.
	Cache client.Reader
	// Dial connects to the console socket of a Pod on this node.
	Dial     func(ctx context.Context, pod types.UID) (net.Conn, error)
	Identity identity.Source
	// Verbs are what the launcher in a Pod may be asked for, by name.
	Verbs map[string]Verb

	open sync.WaitGroup
	ping time.Duration // between two pings of a stream; zero: pingEvery
}

// NeedLeaderElection is false: each node serves its own guests.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until ctx ends; open streams are told and closed.
func (s *Server) Start(ctx context.Context) error {
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listening for streams: %w", err)
	}
	return s.serve(ctx, l)
}

func (s *Server) serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           s.handler(ctx),
		TLSConfig:         identity.Server(s.Identity, onlyAPI),
		ReadHeaderTimeout: handshakeTimeout,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		server.Close() // hijacked connections are the streams' own
	}()
	if err := server.ServeTLS(l, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving streams: %w", err)
	}
	<-stopped
	s.open.Wait()
	return nil
}

// onlyAPI admits virt-api: another node's agent has no business here.
func onlyAPI(p identity.Peer) error {
	if p != (identity.Peer{Role: identity.RoleAPI}) {
		return fmt.Errorf("%w: %s, want %s", identity.ErrPeer, p, identity.RoleAPI)
	}
	return nil
}

// base is the path of a VMI.
const base = "/v1/namespaces/{namespace}/virtualmachineinstances/{name}/"

func (s *Server) handler(stop context.Context) http.Handler {
	free := make(chan struct{}, limit)
	mux := http.NewServeMux()
	for name, verb := range s.Verbs {
		mux.HandleFunc("PUT "+base+name, func(w http.ResponseWriter, r *http.Request) { s.verb(w, r, verb) })
	}
	mux.HandleFunc("GET "+base+"console", func(w http.ResponseWriter, r *http.Request) {
		select {
		case free <- struct{}{}:
			defer func() { <-free }()
		default:
			answer(w, apierrors.NewTooManyRequests("too many open streams on this node", 10))
			return
		}
		s.open.Add(1)
		defer s.open.Done()
		s.console(stop, w, r)
	})
	return mux
}

// console joins the caller to the guest's first serial port. The socket is dialled first, so that whatever is wrong
// there is still an HTTP answer.
func (s *Server) console(stop context.Context, w http.ResponseWriter, r *http.Request) {
	pod, err := s.launcher(r.Context(), target(r))
	if err != nil {
		answer(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), handshakeTimeout)
	defer cancel()
	console, err := s.Dial(ctx, pod)
	if err != nil {
		answer(w, fmt.Errorf("reaching the guest's console: %w", err))
		return
	}
	defer console.Close()
	// The origin says nothing: the caller is virt-api, by its certificate.
	up := websocket.Upgrader{
		HandshakeTimeout: handshakeTimeout, ReadBufferSize: buffer, WriteBufferSize: buffer, Subprotocols: []string{Protocol},
		CheckOrigin: func(*http.Request) bool { return true },
	}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		log.FromContext(r.Context()).Info("a console was not opened", "reason", err.Error()) // Upgrade has answered
		return
	}
	defer ws.Close()
	s.join(stop, ws, console)
}

func target(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}

// launcher returns the Pod of a VMI that runs, or is about to, on this node.
func (s *Server) launcher(ctx context.Context, key types.NamespacedName) (types.UID, error) {
	vmi := &v1.VirtualMachineInstance{}
	if err := s.Cache.Get(ctx, key, vmi); err != nil {
		return "", err
	}
	if !plan.Ours(s.Node, vmi) {
		return "", apierrors.NewConflict(v1.Resource("virtualmachineinstances"), key.Name, fmt.Errorf("VMI is %s, on node %q", vmi.Status.Phase, vmi.Status.NodeName))
	}
	var pods k8sv1.PodList
	if err := s.Cache.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingFields{guest.OwnerIndex: string(vmi.UID)}); err != nil {
		return "", err
	}
	pod := plan.LauncherOf(s.Node, vmi, pods.Items)
	if pod == nil {
		return "", apierrors.NewConflict(v1.Resource("virtualmachineinstances"), key.Name, errors.New("its launcher Pod is not seen on this node"))
	}
	return pod.UID, nil
}

// answer tells a failure as a Kubernetes Status.
func answer(w http.ResponseWriter, err error) {
	var api apierrors.APIStatus
	if !errors.As(err, &api) {
		api = apierrors.NewInternalError(err)
	}
	status := api.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // a caller that has gone needs no answer
}
