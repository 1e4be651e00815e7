package subresource

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/machine/names"
)

// agent is a node agent of a test; serve gets each stream.
type agent struct {
	server *httptest.Server
	path   atomic.Value // a string: of the last request; there may be several at once
}

func newAgent(t *testing.T, ca authority, node string, serve func(*websocket.Conn)) *agent {
	t.Helper()
	return serveAgent(t, ca, agentAt{node: node}, serve)
}

// agentAt is which agent it is; port zero is any.
type agentAt struct {
	node string
	port int
}

func serveAgent(t *testing.T, ca authority, at agentAt, serve func(*websocket.Conn)) *agent {
	t.Helper()
	a := &agent{}
	a.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.path.Store(r.URL.Path)
		if serve == nil {
			http.Error(w, "Active VNC connection. Request denied.", http.StatusServiceUnavailable)
			return
		}
		up := websocket.Upgrader{Subprotocols: []string{protocol}}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		serve(conn)
	}))
	own := holder{ca.issue(t, "", identity.Peer{Role: identity.RoleNodeAgent, Node: at.node}), ca.pool()}
	a.server.TLS = identity.Server(own, func(p identity.Peer) error {
		if p.Role != identity.RoleAPI {
			return identity.ErrPeer
		}
		return nil
	})
	if at.port != 0 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", at.port))
		if err != nil {
			t.Fatal(err)
		}
		a.server.Listener.Close()
		a.server.Listener = l
	}
	a.server.StartTLS()
	t.Cleanup(a.server.Close)
	return a
}

// consoles returns virt-api in front of the agent of node n1, and how to open the console of VMI web.
func consoles(t *testing.T, ca authority, a *agent) (*Server, func() (*websocket.Conn, *http.Response, error)) {
	t.Helper()
	pod := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "virt-handler-1", Labels: map[string]string{v1.AppLabel: names.Handler}}}
	pod.Spec.NodeName = "n1"
	pod.Status = k8sv1.PodStatus{Phase: k8sv1.PodRunning, PodIP: "127.0.0.1"}
	s := newServer(t, webVMI(v1.Running), pod)
	s.Agents.Identity = holder{ca.issue(t, "", identity.Peer{Role: identity.RoleAPI}), ca.pool()}
	s.Agents.Port = port(t, a.server.Listener.Addr().String())
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	return s, func() (*websocket.Conn, *http.Response, error) {
		d := websocket.Dialer{Subprotocols: []string{protocol}}
		return d.DialContext(t.Context(), "ws"+strings.TrimPrefix(front.URL, "http")+inShop+"virtualmachineinstances/web/console", http.Header{"User": {alice}})
	}
}

func opened(t *testing.T, open func() (*websocket.Conn, *http.Response, error)) *websocket.Conn {
	t.Helper()
	conn, _, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if conn.Subprotocol() != protocol {
		t.Errorf("subprotocol %q, want %q", conn.Subprotocol(), protocol)
	}
	return conn
}

// echo sends back what comes, message by message.
func echo(conn *websocket.Conn) {
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, message) != nil {
			return
		}
	}
}

func TestConsoleCarriesEveryByte(t *testing.T) {
	ca := newAuthority(t)
	a := newAgent(t, ca, "n1", echo)
	_, open := consoles(t, ca, a)
	conn := opened(t, open)
	const chunk, chunks = 70_000, 300 // 21 MB each way, in chunks larger than the buffers
	sent, got := sha256.New(), sha256.New()
	go func() {
		data := make([]byte, chunk)
		for range chunks {
			_, _ = rand.Read(data)
			sent.Write(data)
			if conn.WriteMessage(websocket.BinaryMessage, data) != nil {
				return
			}
		}
	}()
	for n := int64(0); n < chunk*chunks; {
		kind, r, err := conn.NextReader()
		if err != nil || kind != websocket.BinaryMessage {
			t.Fatalf("after %d bytes: message of kind %d, %v", n, kind, err)
		}
		m, err := io.Copy(got, r)
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	if !bytes.Equal(sent.Sum(nil), got.Sum(nil)) {
		t.Error("what came back isn't what was sent")
	}
	if want := "/v1/namespaces/shop/virtualmachineinstances/web/console"; a.path.Load() != want {
		t.Errorf("virt-handler was asked for %s, want %s", a.path.Load(), want)
	}
}

// Who is taken over reads so, and the connection ends in order; nothing of it is left. Source: kubevirt/kubevirt#6493.
func TestTakeoverIsTold(t *testing.T) {
	ca := newAuthority(t)
	const text = "\r\nconsole taken over by another client\r\n"
	a := newAgent(t, ca, "n1", func(conn *websocket.Conn) {
		_ = conn.WriteMessage(websocket.BinaryMessage, bytes.Repeat([]byte("x"), 1<<20))
		_ = conn.WriteMessage(websocket.BinaryMessage, []byte(text))
		_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "taken over"), time.Now().Add(time.Second))
		_, _, _ = conn.ReadMessage()
	})
	s, open := consoles(t, ca, a)
	before := runtime.NumGoroutine()
	conn := opened(t, open)
	// What is typed meanwhile must not cost the last lines.
	if err := conn.WriteMessage(websocket.BinaryMessage, []byte("ls\n")); err != nil {
		t.Fatal(err)
	}
	all, err := drain(conn)
	var closed *websocket.CloseError
	if !bytes.HasSuffix(all, []byte(text)) || len(all) != 1<<20+len(text) {
		t.Errorf("read %d bytes", len(all))
	}
	if !errors.As(err, &closed) || closed.Code != websocket.CloseNormalClosure || closed.Text != "taken over" {
		t.Errorf("closed by %v", err)
	}
	conn.Close()
	s.Streams.Wait()
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }) // an idle connection of the pool
}

func drain(conn *websocket.Conn) ([]byte, error) {
	var all []byte
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return all, err
		}
		all = append(all, message...)
	}
}

// A client that is killed leaves nothing behind, and the node agent hears of it.
func TestKilledClient(t *testing.T) {
	ca := newAuthority(t)
	ended := make(chan error, 1)
	a := newAgent(t, ca, "n1", func(conn *websocket.Conn) {
		_, _, err := conn.ReadMessage()
		ended <- err
	})
	s, open := consoles(t, ca, a)
	conn := opened(t, open)
	if err := conn.NetConn().Close(); err != nil {
		t.Fatal(err)
	}
	s.Streams.Wait()
	if err := <-ended; !websocket.IsCloseError(err, websocket.CloseInternalServerErr) {
		t.Errorf("the node agent read %v", err)
	}
}

func TestLostNodeAgent(t *testing.T) {
	ca := newAuthority(t)
	a := newAgent(t, ca, "n1", func(conn *websocket.Conn) { conn.NetConn().Close() })
	_, open := consoles(t, ca, a)
	_, err := drain(opened(t, open))
	var closed *websocket.CloseError
	if !errors.As(err, &closed) || closed.Code != websocket.CloseInternalServerErr || closed.Text != "the connection to the guest was lost" {
		t.Errorf("closed by %v", err)
	}
}

func TestStopTellsOpenConsoles(t *testing.T) {
	ca := newAuthority(t)
	s, open := consoles(t, ca, newAgent(t, ca, "n1", echo))
	ctx, stop := context.WithCancel(t.Context())
	s.Streams = NewStreams(ctx, StreamLimits{All: 1, User: 1})
	conn := opened(t, open)
	_, answer, err := open()
	if err == nil || answer.StatusCode != http.StatusTooManyRequests || answer.Header.Get("Retry-After") == "" {
		t.Errorf("a console more than allowed: %v, %+v", err, answer)
	}
	stop()
	_, err = drain(conn)
	if !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("closed by %v", err)
	}
	s.Streams.Wait()
}

// Threat S9: only the agent of the VMI's node is spoken to, and by nothing but its certificate.
func TestAgentMustBeOfTheNode(t *testing.T) {
	ca := newAuthority(t)
	for name, a := range map[string]*agent{
		"of another node": newAgent(t, ca, "n2", echo),
		"of another CA":   newAgent(t, newAuthority(t), "n1", echo),
	} {
		_, open := consoles(t, ca, a)
		_, answer, err := open()
		if err == nil || answer == nil || answer.StatusCode != http.StatusInternalServerError {
			t.Errorf("virt-handler %s: %v, %+v", name, err, answer)
		}
	}
}

func TestConsoleRefusals(t *testing.T) {
	ca := newAuthority(t)
	_, open := consoles(t, ca, newAgent(t, ca, "n1", nil))
	_, answer, err := open()
	if err == nil || answer.StatusCode != 500 {
		t.Fatalf("console that virt-handler refuses: %v", err)
	}
	if text, _ := io.ReadAll(answer.Body); !strings.Contains(string(text), "unexpected return code 503 (Active VNC connection. Request denied.)") {
		t.Errorf("answer %s", text)
	}
	no := false
	for want, change := range map[string]func(*v1.VirtualMachineInstance){
		"No serial consoles are present.": func(vmi *v1.VirtualMachineInstance) { vmi.Spec.Domain.Devices.AutoattachSerialConsole = &no },
		`Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io "web": VMI is in failed status`: func(vmi *v1.VirtualMachineInstance) { vmi.Status.Phase = v1.Failed },
		"VMI is not running": func(vmi *v1.VirtualMachineInstance) { vmi.Status.Phase = v1.Scheduled },
		"this is a stream: ask for an upgrade to a websocket": func(*v1.VirtualMachineInstance) {},
	} {
		vmi := webVMI(v1.Running)
		change(vmi)
		w := ask(newServer(t, vmi), "GET", inShop+"virtualmachineinstances/web/console", "")
		if got := statusOf(t, w); got.Message != want {
			t.Errorf("HTTP %d %q, want %q", w.Code, got.Message, want)
		}
	}
}
