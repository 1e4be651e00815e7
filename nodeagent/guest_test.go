package nodeagent

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/nodeagent/guest"
	"virtstack.io/virtstack/nodeagent/link"
)

// agent is the guest loop of node-a with the rights of its account, its launchers and its network replaced.
type agent struct {
	writes atomic.Int32
	stop   func()
}

func startAgent(t *testing.T, e *kubetest.Env, l *launcher, network guest.Network) *agent {
	t.Helper()
	mgr, err := ctrl.NewManager(e.ConfigAs(account, groups, bound("node-a")), ctrl.Options{
		Scheme: e.Client.Scheme(), Cache: cacheOf("node-a"), Metrics: metrics.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.GetFieldIndexer().IndexField(t.Context(), &k8sv1.Pod{}, guest.OwnerIndex, guest.Owner); err != nil {
		t.Fatal(err)
	}
	a := &agent{}
	direct, err := client.NewWithWatch(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		t.Fatal(err)
	}
	counted := interceptor.NewClient(direct, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			a.writes.Add(1)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	n := newNews()
	launchers := &link.Launchers{Dial: func(ctx context.Context, _ types.UID) (net.Conn, error) { return l.dial(ctx) }, Changed: n.tell}
	c := &guest.Controller{
		Node: "node-a", Cache: mgr.GetCache(), Live: mgr.GetAPIReader(), Status: apply.Applier{Client: counted, Manager: guest.Manager},
		Events: mgr.GetEventRecorder("virt-handler"), Launchers: launchers, Network: network,
	}
	if err := guestLoop(mgr, c, n); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	a.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		launchers.Close()
		done <- nil // may be stopped twice
	}
	t.Cleanup(a.stop)
	return a
}

// schedule makes a VMI and its launcher Pod and hands them over to node-a as virt-controller does.
func schedule(t *testing.T, e *kubetest.Env, ns string) *v1.VirtualMachineInstance {
	t.Helper()
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web", Finalizers: []string{v1.VirtualMachineInstanceFinalizer}}}
	vmi.Spec.TerminationGracePeriodSeconds = new(int64(30))
	if err := e.Client.Create(t.Context(), vmi); err != nil {
		t.Fatal(err)
	}
	pod := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: "virt-launcher-web", Labels: map[string]string{"kubevirt.io": "virt-launcher"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(vmi, v1.VirtualMachineInstanceGroupVersionKind)},
	}}
	pod.Spec.NodeName = "node-a"
	pod.Spec.Containers = []k8sv1.Container{{Name: "compute", Image: "image"}}
	pod.Spec.AutomountServiceAccountToken = new(false)
	if err := e.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.PodIP, pod.Status.PodIPs = "10.88.0.7", []k8sv1.PodIP{{IP: "10.88.0.7"}}
	if err := e.Client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	st := &v1.VirtualMachineInstanceStatus{
		Phase: v1.Scheduled, NodeName: "node-a", ActivePods: map[types.UID]string{pod.UID: "node-a"},
		PhaseTransitionTimestamps: []v1.VirtualMachineInstancePhaseTransitionTimestamp{{Phase: v1.Scheduled, PhaseTransitionTimestamp: metav1.Now()}},
	}
	if err := (apply.Applier{Client: e.Client, Manager: "virt-controller-vmi"}).Status(t.Context(), vmi, st); err != nil {
		t.Fatal(err)
	}
	return vmi
}

// await returns the VMI once ok holds for it.
func await(t *testing.T, e *kubetest.Env, ns, what string, ok func(*v1.VirtualMachineInstance) bool) *v1.VirtualMachineInstance {
	t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		err := e.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: "web"}, vmi)
		return err == nil && ok(vmi), err
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v; status %+v", what, err, vmi.Status)
	}
	return vmi
}

func phase(p v1.VirtualMachineInstancePhase) func(*v1.VirtualMachineInstance) bool {
	return func(vmi *v1.VirtualMachineInstance) bool { return vmi.Status.Phase == p }
}

func TestAGuestLivesThroughItsAgentsAndEndsWithItsVMI(t *testing.T) {
	e := kubetest.Start(t)
	install(t, e)
	ns, l := e.Namespace(t), newLauncher(t)
	first := startAgent(t, e, l, noNetwork{})
	schedule(t, e, ns)
	vmi := await(t, e, ns, "the guest to run", phase(v1.Running))
	if vmi.Status.NodeName != "node-a" || len(vmi.Status.ActivePods) != 1 || vmi.Status.Machine == nil || len(vmi.Status.PhaseTransitionTimestamps) != 2 {
		t.Errorf("status is %+v", vmi.Status)
	}
	// virt-controller's unforced word on the phase is now refused: the VMI is handed over.
	err := apply.Applier{Client: e.Client, Manager: "virt-controller-vmi"}.Status(t.Context(), vmi, &v1.VirtualMachineInstanceStatus{Phase: v1.Failed, NodeName: "node-a", ActivePods: vmi.Status.ActivePods})
	if !apierrors.IsConflict(err) {
		t.Errorf("virt-controller still has the phase: %v", err)
	}
	first.stop()
	if got := first.writes.Load(); got != 1 {
		t.Errorf("%d status writes from Scheduled to Running, want 1", got)
	}

	startAgent(t, e, l, noNetwork{})
	l.become("", &guestv1.State{Phase: guestv1.State_PHASE_PAUSED, Machine: "pc-q35-10.0"})
	await(t, e, ns, "the pause", paused)
	l.become("", &guestv1.State{Phase: guestv1.State_PHASE_RUNNING, Machine: "pc-q35-10.0"})
	await(t, e, ns, "its end", func(vmi *v1.VirtualMachineInstance) bool { return !paused(vmi) })
	if got := l.called(); !slices.Equal(got, []string{"sync"}) {
		t.Errorf("a new agent made it %v", got)
	}
	if err := e.Client.Delete(t.Context(), vmi); err != nil {
		t.Fatal(err)
	}
	await(t, e, ns, "the guest to end", phase(v1.Succeeded))
	if got := l.called(); !slices.Equal(got, []string{"sync", "shutdown"}) {
		t.Errorf("the launcher was called %v", got)
	}
}

func paused(vmi *v1.VirtualMachineInstance) bool {
	return slices.ContainsFunc(vmi.Status.Conditions, func(c v1.VirtualMachineInstanceCondition) bool {
		return c.Type == v1.VirtualMachineInstancePaused && c.Status == k8sv1.ConditionTrue
	})
}

func TestANetworkThatCannotBePreparedIsACondition(t *testing.T) {
	e := kubetest.Start(t)
	install(t, e)
	ns, l := e.Namespace(t), newLauncher(t)
	startAgent(t, e, l, noNetwork{errors.New("no bridge")})
	schedule(t, e, ns)
	vmi := await(t, e, ns, "the condition", func(vmi *v1.VirtualMachineInstance) bool { return len(vmi.Status.Conditions) > 0 })
	c := vmi.Status.Conditions[0]
	want := "starting the guest in Pod virt-launcher-web: preparing the network: no bridge"
	if vmi.Status.Phase != v1.Scheduled || c.Type != v1.VirtualMachineInstanceSynchronized || c.Status != k8sv1.ConditionFalse || c.Message != want {
		t.Errorf("phase %s, condition %+v", vmi.Status.Phase, c)
	}
	if got := l.called(); len(got) != 0 {
		t.Errorf("the launcher was called %v", got)
	}
}

func TestALauncherThatFailsIsTheVMIsFailure(t *testing.T) {
	e := kubetest.Start(t)
	install(t, e)
	ns, l := e.Namespace(t), newLauncher(t)
	startAgent(t, e, l, noNetwork{})
	schedule(t, e, ns)
	await(t, e, ns, "the guest to run", phase(v1.Running))
	l.become("", &guestv1.State{Phase: guestv1.State_PHASE_STOPPED, StopReason: guestv1.State_STOP_REASON_CRASHED, Message: "the guest panicked"})
	if vmi := await(t, e, ns, "the failure", phase(v1.Failed)); vmi.Status.Reason != "GuestCrashed" {
		t.Errorf("reason %q", vmi.Status.Reason)
	}
}
