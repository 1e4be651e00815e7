package virtctl

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	consolePath = "GET /apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web/console"
	webPath     = "GET /apis/kubevirt.io/v1/namespaces/default/virtualmachines/web"
)

// guest answers with a console.
func guest(serve func(*websocket.Conn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{Subprotocols: []string{protocol}}
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		serve(conn)
	}
}

func goodbye(conn *websocket.Conn, code int, text string) {
	_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
	_, _, _ = conn.ReadMessage()
}

// shout answers each message in capitals.
func shout(conn *websocket.Conn) {
	for {
		kind, message, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, bytes.ToUpper(message)) != nil {
			return
		}
	}
}

func virtualMachine(status string) http.HandlerFunc {
	return reply(200, map[string]any{"metadata": map[string]string{"name": "web"}, "status": map[string]any{"printableStatus": status}})
}

var notRunning = refuse(400, metav1.StatusReasonBadRequest, "VMI is not running", nil)

func TestConsoleOfPipes(t *testing.T) {
	c := newCluster(t)
	c.answers[consolePath] = guest(shout)
	for name, in := range map[string]io.Reader{
		"ends when the guest is silent": strings.NewReader("hello\n"),
		"ends at the escape":            io.MultiReader(strings.NewReader("hello\n\x1dnot sent"), neverEnding{}),
	} {
		got := c.virtctl(t, in, "virtctl console web")
		if got.code != 0 || got.out != "HELLO\n" || !strings.HasPrefix(got.err, "Connected to the console of web. Ctrl-] leaves it.\n") || !strings.Contains(got.err, "Left the console of web.") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// neverEnding is an input that says nothing and doesn't end.
type neverEnding struct{}

func (neverEnding) Read([]byte) (int, error) { select {} }

func TestConsoleEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		serve func(*websocket.Conn)
		code  int
		out   string
		err   []string
	}{
		"in order": {func(conn *websocket.Conn) { goodbye(conn, websocket.CloseNormalClosure, "") }, 0, "",
			[]string{"The console of web was closed by the other side. Connect again with: virtctl console web -n default"}},
		"taken over": {func(conn *websocket.Conn) {
			_ = conn.WriteMessage(websocket.BinaryMessage, []byte("taken over\n"))
			goodbye(conn, websocket.CloseNormalClosure, "taken over by another client")
		}, 1, "taken over\n", []string{"Error: the console was closed: taken over by another client", "Connect again with"}},
		"virt-api stops": {func(conn *websocket.Conn) {
			goodbye(conn, websocket.CloseGoingAway, "virt-api is stopping: connect again")
		}, 1, "",
			[]string{"virt-api is stopping", "The guest is not affected."}},
		"cut": {func(conn *websocket.Conn) { conn.NetConn().Close() }, 1, "", []string{"The guest is not affected. Connect again with: virtctl console web -n default"}},
		"text is not the guest's": {func(conn *websocket.Conn) {
			_ = conn.WriteMessage(websocket.TextMessage, []byte("noise"))
			goodbye(conn, websocket.CloseNormalClosure, "")
		}, 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.answers[consolePath] = guest(tc.serve)
			got := c.virtctl(t, neverEnding{}, "virtctl console vmi/web")
			if got.code != tc.code || got.out != tc.out {
				t.Errorf("%+v", got)
			}
			for _, want := range tc.err {
				if !strings.Contains(got.err, want) {
					t.Errorf("printed %q, want %q", got.err, want)
				}
			}
		})
	}
}

func TestConsoleWaitsForTheGuest(t *testing.T) {
	c := newCluster(t)
	var asked atomic.Int32
	c.answers[consolePath] = func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) < 3 {
			notRunning(w, r)
			return
		}
		guest(shout)(w, r)
	}
	c.answers[webPath] = virtualMachine("Starting")
	got := c.virtctl(t, strings.NewReader("hi"), "virtctl console vm/web/default")
	if got.code != 0 || got.out != "HI" || strings.Count(got.err, "Waiting for VM web: Starting\n") != 1 {
		t.Errorf("%+v", got)
	}
}

func TestConsoleOfWhatWillNotRun(t *testing.T) {
	vms := strings.TrimSuffix(webPath, "/web")
	gone := refuse(404, metav1.StatusReasonNotFound, `virtualmachineinstance.kubevirt.io "web" not found`, &metav1.StatusDetails{Name: "web"})
	for name, tc := range map[string]struct {
		answers map[string]http.HandlerFunc
		want    string
	}{
		"stopped": {map[string]http.HandlerFunc{consolePath: gone, webPath: virtualMachine("Stopped")},
			"Error: VM web is Stopped. Start it with: virtctl start web -n default\n"},
		"unknown": {map[string]http.HandlerFunc{consolePath: gone, webPath: notFoundVM("web"), vms: listOf("wep")},
			"Error: VirtualMachine \"web\" not found in namespace \"default\". Did you mean wep?\n"},
		"late": {map[string]http.HandlerFunc{consolePath: notRunning, webPath: virtualMachine("ErrImagePull")},
			"VM web is ErrImagePull after 0s.\nLook at: kubectl describe vm web -n default\n"},
		"failed": {map[string]http.HandlerFunc{consolePath: refuse(409, metav1.StatusReasonConflict, "VMI is in failed status", nil)},
			"Error: VMI is in failed status\n"},
		"forbidden": {map[string]http.HandlerFunc{consolePath: refuse(403, metav1.StatusReasonForbidden, "no", nil)},
			"Error: no\nThe ClusterRoles kubevirt.io:edit"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			for k, v := range tc.answers {
				c.answers[k] = v
			}
			got := c.virtctl(t, neverEnding{}, "virtctl console web --timeout 0")
			if got.code != 1 || !strings.Contains(got.err, tc.want) {
				t.Errorf("%+v, want %q", got, tc.want)
			}
		})
	}
}

// Megabytes arrive whole, in order, however they are cut.
func TestConsoleOfMuchOutput(t *testing.T) {
	c := newCluster(t)
	line := bytes.Repeat([]byte("0123456789abcdef"), 4097)
	c.answers[consolePath] = guest(func(conn *websocket.Conn) {
		for range 200 {
			_ = conn.WriteMessage(websocket.BinaryMessage, line)
		}
		goodbye(conn, websocket.CloseNormalClosure, "")
	})
	got := c.virtctl(t, neverEnding{}, "virtctl console web")
	if got.code != 0 || got.out != strings.Repeat(string(line), 200) {
		t.Errorf("exit code %d, %d bytes, want %d", got.code, len(got.out), 200*len(line))
	}
}
