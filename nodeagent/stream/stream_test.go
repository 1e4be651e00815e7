package stream

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
	"time"

	"github.com/gorilla/websocket"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"virtstack.io/virtstack/nodeagent/guest"
)

const here = "node-a"

func vmi(name string, phase v1.VirtualMachineInstancePhase, node string) *v1.VirtualMachineInstance {
	m := &v1.VirtualMachineInstance{}
	m.Namespace, m.Name, m.UID = "ns", name, types.UID(name+"-uid")
	m.Status.Phase, m.Status.NodeName = phase, node
	m.Status.ActivePods = map[types.UID]string{types.UID(name + "-pod"): node}
	return m
}

func pod(name string) *k8sv1.Pod {
	p := &k8sv1.Pod{}
	p.Namespace, p.Name, p.UID = "ns", name+"-launcher", types.UID(name+"-pod")
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "VirtualMachineInstance", Name: name, UID: types.UID(name + "-uid"), Controller: new(true)}}
	p.Spec.NodeName = here
	return p
}

// serve starts a server for VMI web, which runs here; its console is the other end of guest.
func serve(t *testing.T, dial func(context.Context, types.UID) (net.Conn, error)) (s *Server, url string, stop context.CancelFunc) {
	t.Helper()
	return serveWith(t, dial, nil)
}

func serveWith(t *testing.T, dial func(context.Context, types.UID) (net.Conn, error), verbs map[string]Verb) (s *Server, url string, stop context.CancelFunc) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	cache := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&k8sv1.Pod{}, guest.OwnerIndex, guest.Owner).WithObjects([]client.Object{
		vmi("web", v1.Running, here), pod("web"),
		vmi("starting", v1.Scheduling, here), pod("starting"),
		vmi("elsewhere", v1.Running, "node-b"), pod("elsewhere"),
		vmi("podless", v1.Running, here),
	}...).Build()
	s = &Server{Node: here, Cache: cache, Dial: dial, Verbs: verbs}
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(s.handler(ctx))
	t.Cleanup(func() {
		cancel()
		server.Close()
		s.open.Wait()
	})
	return s, server.URL + "/v1/namespaces/ns/virtualmachineinstances/", cancel
}

func to(conn net.Conn) func(context.Context, types.UID) (net.Conn, error) {
	return func(_ context.Context, pod types.UID) (net.Conn, error) {
		if pod != "web-pod" {
			return nil, fmt.Errorf("asked for Pod %s", pod)
		}
		return conn, nil
	}
}

func open(t *testing.T, url string) *websocket.Conn {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{Protocol}, HandshakeTimeout: 5 * time.Second}
	c, _, err := d.Dial("ws"+strings.TrimPrefix(url, "http")+"web/console", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if c.Subprotocol() != Protocol {
		t.Errorf("subprotocol is %q, want %q", c.Subprotocol(), Protocol)
	}
	return c
}

func TestBytesFlowBothWays(t *testing.T) {
	ours, theirs := net.Pipe()
	_, url, _ := serve(t, to(theirs))
	go func() { _, _ = io.Copy(ours, ours) }() // the guest echoes
	c := open(t, url)
	sent := make([]byte, 3<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(sent)
	go func() {
		_ = c.WriteMessage(websocket.TextMessage, []byte("not part of the protocol"))
		for b := sent; len(b) > 0; b = b[min(len(b), 9000):] {
			_ = c.WriteMessage(websocket.BinaryMessage, b[:min(len(b), 9000)])
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

func closedWith(t *testing.T, c *websocket.Conn, code int) {
	t.Helper()
	if _, _, err := c.ReadMessage(); !websocket.IsCloseError(err, code) {
		t.Errorf("got %v, want close code %d", err, code)
	}
}

func TestTheEndOfTheGuestClosesNormally(t *testing.T) {
	ours, theirs := net.Pipe()
	_, url, _ := serve(t, to(theirs))
	c := open(t, url)
	ours.Close()
	closedWith(t, c, websocket.CloseNormalClosure)
}

func TestAStoppingNodeAgentSaysSo(t *testing.T) {
	_, theirs := net.Pipe()
	s, url, stop := serve(t, to(theirs))
	c := open(t, url)
	stop()
	closedWith(t, c, websocket.CloseGoingAway)
	s.open.Wait()
}

// A client that goes without a word leaves nothing behind. Source: kubevirt/kubevirt#6493.
func TestAClientThatGoesFreesTheConsole(t *testing.T) {
	ours, theirs := net.Pipe()
	s, url, _ := serve(t, to(theirs))
	open(t, url).NetConn().Close()
	ours.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the launcher's end got %v, want %v", err, io.EOF)
	}
	s.open.Wait()
}

func TestFailuresArePlainAnswers(t *testing.T) {
	_, url, _ := serve(t, func(context.Context, types.UID) (net.Conn, error) { return nil, errors.New("no socket") })
	for path, want := range map[string]int{
		"web/console":       http.StatusInternalServerError,
		"nobody/console":    http.StatusNotFound,
		"starting/console":  http.StatusConflict,
		"elsewhere/console": http.StatusConflict,
		"podless/console":   http.StatusConflict,
		"web/vnc":           http.StatusNotFound,
	} {
		resp, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: got %s, want %d", path, resp.Status, want)
		}
	}
}
