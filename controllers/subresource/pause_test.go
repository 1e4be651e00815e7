package subresource

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/machine/names"
)

// before returns virt-api before the node agent of n1, which answers verbs, and the VMI web that runs there.
func before(t *testing.T, vmi *v1.VirtualMachineInstance, agent http.HandlerFunc) *Server {
	t.Helper()
	ca := newAuthority(t)
	server := httptest.NewUnstartedServer(agent)
	own := holder{ca.issue(t, "", identity.Peer{Role: identity.RoleNodeAgent, Node: "n1"}), ca.pool()}
	server.TLS = identity.Server(own, func(identity.Peer) error { return nil })
	server.StartTLS()
	t.Cleanup(server.Close)
	pod := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: names.Namespace, Name: "virt-handler-1", Labels: map[string]string{v1.AppLabel: names.Handler}}}
	pod.Spec.NodeName = "n1"
	pod.Status = k8sv1.PodStatus{Phase: k8sv1.PodRunning, PodIP: "127.0.0.1"}
	s := newServer(t, vmi, pod, webVM(v1.RunStrategyAlways))
	s.Agents.Identity = holder{ca.issue(t, "", identity.Peer{Role: identity.RoleAPI}), ca.pool()}
	s.Agents.Port = port(t, server.Listener.Addr().String())
	return s
}

func pausedVMI() *v1.VirtualMachineInstance {
	vmi := webVMI(v1.Running)
	vmi.Status.Conditions = []v1.VirtualMachineInstanceCondition{{Type: v1.VirtualMachineInstancePaused, Status: k8sv1.ConditionTrue}}
	return vmi
}

func TestPauseAndUnpauseAreTheNodeAgents(t *testing.T) {
	for name, tc := range map[string]struct {
		vmi  *v1.VirtualMachineInstance
		verb string
		body string
		code int
		sent string
	}{
		"pause":                {webVMI(v1.Running), "pause", "", 200, "PUT /v1/namespaces/shop/virtualmachineinstances/web/pause"},
		"unpause":              {pausedVMI(), "unpause", "{}", 200, "PUT /v1/namespaces/shop/virtualmachineinstances/web/unpause"},
		"pause, dry run":       {webVMI(v1.Running), "pause", `{"dryRun":["All"]}`, 200, ""},
		"unpause, dry run":     {pausedVMI(), "unpause", `{"dryRun":["All"]}`, 200, ""},
		"another dry run":      {webVMI(v1.Running), "pause", `{"dryRun":["Some"]}`, 400, ""},
		"no options":           {webVMI(v1.Running), "pause", `[]`, 400, ""},
		"paused already":       {pausedVMI(), "pause", "", 409, ""},
		"paused, dry run":      {pausedVMI(), "pause", `{"dryRun":["All"]}`, 409, ""},
		"not paused":           {webVMI(v1.Running), "unpause", "", 409, ""},
		"not running":          {webVMI(v1.Scheduled), "pause", "", 409, ""},
		"not running, unpause": {webVMI(v1.Scheduled), "unpause", "", 409, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sent := ""
			s := before(t, tc.vmi, func(w http.ResponseWriter, r *http.Request) {
				sent = r.Method + " " + r.URL.Path
				w.WriteHeader(http.StatusAccepted)
			})
			w := ask(s, "PUT", inShop+"virtualmachineinstances/web/"+tc.verb, tc.body)
			if w.Code != tc.code || sent != tc.sent || tc.code == 200 && w.Body.Len() != 0 {
				t.Errorf("HTTP %d %s, the agent was sent %q; want %d, %q", w.Code, w.Body, sent, tc.code, tc.sent)
			}
		})
	}
}

func TestTheNodeAgentsRefusalIsToldWithItsReason(t *testing.T) {
	s := before(t, webVMI(v1.Running), func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, apierrors.NewInternalError(errors.New("its launcher has not been heard of yet")))
	})
	w := ask(s, "PUT", inShop+"virtualmachineinstances/web/pause", "")
	if got := statusOf(t, w); w.Code != 500 || !strings.Contains(got.Message, "unexpected return code 500") || !strings.Contains(got.Message, "has not been heard of yet") {
		t.Errorf("HTTP %d %q", w.Code, got.Message)
	}
}

func TestAHaltedVMStartsPaused(t *testing.T) {
	s := newServer(t, webVM(v1.RunStrategyHalted))
	want202(t, s, "start", `{"paused":true}`)
	vm := read(t, s)
	if r := vm.Status.StateChangeRequests; *vm.Spec.RunStrategy != v1.RunStrategyAlways || len(r) != 1 || r[0].Action != v1.StartRequest || r[0].Data["paused"] != "true" {
		t.Errorf("strategy %s, requests %+v", *vm.Spec.RunStrategy, r)
	}
}

// Nothing is left in the status of a start whose second write is refused, and the next start isn't held up by one that
// was cut off between the two.
func TestAStartThatIsRefusedHalfWayLeavesNothing(t *testing.T) {
	for name, refuse := range map[string]error{
		"forbidden": apierrors.NewForbidden(v1.Resource("virtualmachines"), "web", errors.New("no")),
		"changed":   apierrors.NewConflict(v1.Resource("virtualmachines"), "web", errChanged),
	} {
		s := newServer(t, webVM(v1.RunStrategyHalted))
		whole := s.Kube
		s.Kube = interceptor.NewClient(whole.(client.WithWatch), interceptor.Funcs{
			Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
				return refuse
			},
		})
		if w := ask(s, "PUT", inShop+"virtualmachines/web/start", `{"paused":true}`); w.Code < 400 {
			t.Errorf("%s: HTTP %d", name, w.Code)
		}
		if vm := read(t, s); len(vm.Status.StateChangeRequests) != 0 {
			t.Errorf("%s: left %+v", name, vm.Status.StateChangeRequests)
		}
	}
	s := newServer(t, webVM(v1.RunStrategyHalted))
	cutOff := read(t, s)
	cutOff.Status.StateChangeRequests = []v1.VirtualMachineStateChangeRequest{{Action: v1.StartRequest, Data: map[string]string{"paused": "true"}}}
	if err := s.Kube.Status().Update(t.Context(), cutOff); err != nil {
		t.Fatal(err)
	}
	want202(t, s, "start", "")
	if vm := read(t, s); *vm.Spec.RunStrategy != v1.RunStrategyAlways || len(vm.Status.StateChangeRequests) != 0 {
		t.Errorf("strategy %s, requests %+v", *vm.Spec.RunStrategy, vm.Status.StateChangeRequests)
	}
}
