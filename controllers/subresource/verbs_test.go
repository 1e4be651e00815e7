package subresource

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"virtstack.io/virtstack/machine/names"
)

var objectPod = &k8sv1.Pod{}

func cut(s string) (method, path string, ok bool) { return strings.Cut(s, " ") }

func webVM(strategy v1.VirtualMachineRunStrategy) *v1.VirtualMachine {
	vm := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "vm-1"}}
	vm.Spec.RunStrategy, vm.Spec.Template = &strategy, &v1.VirtualMachineInstanceTemplateSpec{}
	vm.Status.ObservedGeneration = 1
	return vm
}

func webVMI(phase v1.VirtualMachineInstancePhase) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "vmi-1"}}
	yes := true
	vmi.OwnerReferences = []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Name: "web", UID: "vm-1", Controller: &yes}}
	vmi.Status.Phase, vmi.Status.NodeName = phase, "n1"
	return vmi
}

func launcherOf(vmi *v1.VirtualMachineInstance, owner string) *k8sv1.Pod {
	yes := true
	return &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: names.LauncherPod(vmi.Name, vmi.UID), UID: "pod-1",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachineInstance", Name: "web", UID: "vmi-1", Controller: &yes}},
		Labels:          map[string]string{"owner": owner},
	}}
}

func read(t *testing.T, s *Server) *v1.VirtualMachine {
	t.Helper()
	vm, err := s.vm(t.Context(), Target{"shop", "web"})
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func want202(t *testing.T, s *Server, verb, body string) {
	t.Helper()
	if w := ask(s, "PUT", inShop+"virtualmachines/web/"+verb, body); w.Code != 202 || w.Body.Len() != 0 {
		t.Fatalf("%s: HTTP %d %q, want 202 and nothing", verb, w.Code, w.Body)
	}
}

func requests202(vm *v1.VirtualMachine) string {
	all := ""
	for _, r := range vm.Status.StateChangeRequests {
		all += string(r.Action)
		if r.UID != nil {
			all += "(" + string(*r.UID) + ")"
		}
		all += " "
	}
	return strings.TrimSpace(all)
}

func TestStartAndStopWriteTheStrategy(t *testing.T) {
	s := newServer(t, webVM(v1.RunStrategyHalted))
	want202(t, s, "start", "")
	if got := *read(t, s).Spec.RunStrategy; got != v1.RunStrategyAlways {
		t.Errorf("after start: %s", got)
	}
	want202(t, s, "stop", "gracePeriod: 3")
	if got := *read(t, s).Spec.RunStrategy; got != v1.RunStrategyHalted {
		t.Errorf("after stop: %s", got)
	}
}

// Stop and start leave the strategy of a RerunOnFailure VM as it is. Source: kubevirt/kubevirt#7295.
func TestRequestsGoToTheStatus(t *testing.T) {
	vm := webVM(v1.RunStrategyRerunOnFailure)
	vm.Status.StartFailure = &v1.VirtualMachineStartFailure{ConsecutiveFailCount: 2}
	s := newServer(t, vm)
	want202(t, s, "start", `{"dryRun":[]}`)
	got := read(t, s)
	if requests202(got) != "Start" || got.Status.StartFailure != nil || *got.Spec.RunStrategy != v1.RunStrategyRerunOnFailure {
		t.Errorf("after start: requests %q, failure %v, strategy %s", requests202(got), got.Status.StartFailure, *got.Spec.RunStrategy)
	}
	if err := s.Kube.Create(t.Context(), webVMI(v1.Running)); err != nil {
		t.Fatal(err)
	}
	want202(t, s, "stop", `{"gracePeriod": 7}`)
	if got := read(t, s); requests202(got) != "Stop(vmi-1)" {
		t.Errorf("after stop: requests %q", requests202(got))
	}
	vmi, err := s.vmi(t.Context(), Target{"shop", "web"})
	if err != nil || *vmi.Spec.TerminationGracePeriodSeconds != 7 {
		t.Errorf("grace period of the VMI: %v, %v", vmi.Spec.TerminationGracePeriodSeconds, err)
	}
	w := ask(s, "PUT", inShop+"virtualmachines/web/restart", "")
	if got := statusOf(t, w); w.Code != 500 || !strings.Contains(got.Message, "stop/start already underway") {
		t.Errorf("restart while a stop waits: HTTP %d %q", w.Code, got.Message)
	}
}

func TestRestartNowKillsTheLauncher(t *testing.T) {
	vmi := webVMI(v1.Running)
	s := newServer(t, webVM(v1.RunStrategyAlways), vmi, launcherOf(vmi, "web"))
	want202(t, s, "restart", `{"gracePeriodSeconds":0}`)
	if got := requests202(read(t, s)); got != "Stop(vmi-1) Start" {
		t.Errorf("requests %q", got)
	}
	err := s.Kube.Get(t.Context(), client.ObjectKeyFromObject(launcherOf(vmi, "")), &k8sv1.Pod{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("launcher after a restart without grace: %v", err)
	}
}

// A Pod that has the launcher's name but is not the VMI's is left alone.
func TestRestartKillsNoStranger(t *testing.T) {
	vmi := webVMI(v1.Running)
	stranger := launcherOf(vmi, "web")
	stranger.OwnerReferences = nil
	s := newServer(t, webVM(v1.RunStrategyAlways), vmi, stranger)
	if w := ask(s, "PUT", inShop+"virtualmachines/web/restart", `{"gracePeriodSeconds":0}`); w.Code != 500 {
		t.Errorf("HTTP %d %s", w.Code, w.Body)
	}
	if err := s.Kube.Get(t.Context(), client.ObjectKeyFromObject(stranger), &k8sv1.Pod{}); err != nil {
		t.Errorf("the stranger: %v", err)
	}
}

// A VMI that has the VM's name but is another's keeps its Pod and its grace period.
func TestVerbsTouchNoStrangersVMI(t *testing.T) {
	vmi := webVMI(v1.Running)
	vmi.OwnerReferences[0].UID = "vm-before"
	s := newServer(t, webVM(v1.RunStrategyAlways), vmi, launcherOf(vmi, "web"))
	if w := ask(s, "PUT", inShop+"virtualmachines/web/restart", `{"gracePeriodSeconds":0}`); w.Code != 409 {
		t.Errorf("restart: HTTP %d %s", w.Code, w.Body)
	}
	want202(t, s, "stop", `{"gracePeriod":0}`)
	got, err := s.vmi(t.Context(), Target{"shop", "web"})
	if err != nil || got.Spec.TerminationGracePeriodSeconds != nil {
		t.Errorf("the VMI's grace period: %v, %v", got.Spec.TerminationGracePeriodSeconds, err)
	}
	if err := s.Kube.Get(t.Context(), client.ObjectKeyFromObject(launcherOf(vmi, "")), &k8sv1.Pod{}); err != nil {
		t.Errorf("its launcher: %v", err)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	vmi := webVMI(v1.Running)
	s := newServer(t, webVM(v1.RunStrategyAlways), vmi, launcherOf(vmi, "web"))
	before := read(t, s).ResourceVersion
	want202(t, s, "stop", `{"dryRun":["All"],"gracePeriod":0}`)
	want202(t, s, "restart", `{"dryRun":["All"],"gracePeriodSeconds":0}`)
	if after := read(t, s).ResourceVersion; after != before {
		t.Errorf("resource version %s, then %s", before, after)
	}
	if w := ask(s, "PUT", inShop+"virtualmachines/web/stop", `{"dryRun":["Some"]}`); w.Code != 400 {
		t.Errorf("dryRun Some: HTTP %d", w.Code)
	}
}

func TestGitOwnedIsRefused(t *testing.T) {
	vm := webVM(v1.RunStrategyAlways)
	vm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "virt-bundles", Operation: "Apply", APIVersion: "kubevirt.io/v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:runStrategy":{}}}`)}}
	s := newServer(t)
	s.Kube = interceptor.NewClient(s.Kube.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if out, ok := obj.(*v1.VirtualMachine); ok {
				vm.DeepCopyInto(out)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	w := ask(s, "PUT", inShop+"virtualmachines/web/stop", "")
	got := statusOf(t, w)
	if w.Code != 409 || !strings.Contains(got.Message, "virt-bundles") || !strings.Contains(got.Message, "runStrategy: Halted") || len(got.Details.Causes) != 2 {
		t.Errorf("HTTP %d %+v", w.Code, got)
	}
}

// A VM that changes between the look and the write is looked at again, and not for ever.
func TestChangedMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct{ conflicts, code int }{"twice": {2, 202}, "always": {99, 409}} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, webVM(v1.RunStrategyHalted))
			left := tc.conflicts
			s.Kube = interceptor.NewClient(s.Kube.(client.WithWatch), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if left > 0 {
						left--
						return apierrors.NewConflict(v1.Resource("virtualmachines"), obj.GetName(), errChanged)
					}
					return c.Patch(ctx, obj, patch, opts...)
				},
			})
			if w := ask(s, "PUT", inShop+"virtualmachines/web/start", ""); w.Code != tc.code {
				t.Errorf("HTTP %d %s, want %d", w.Code, w.Body, tc.code)
			}
		})
	}
}

func port(t *testing.T, address string) int {
	t.Helper()
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return int(a.Port())
}
