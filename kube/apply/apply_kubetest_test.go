package apply_test

import (
	"context"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/condition"
	"virtstack.io/virtstack/kube/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// cluster is an API server with one VMI, and a count of what was written to it.
type cluster struct {
	client.Client
	t      *testing.T
	key    client.ObjectKey
	writes int
}

func start(t *testing.T) *cluster {
	env := kubetest.Start(t)
	c := &cluster{t: t}
	count := func() { c.writes++ }
	wrapped, err := client.NewWithWatch(env.Config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	c.Client = interceptor.NewClient(wrapped, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			count()
			return w.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			count()
			return w.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: env.Namespace(t), Name: "web"}}
	if err := wrapped.Create(t.Context(), vmi); err != nil {
		t.Fatal(err)
	}
	c.key = client.ObjectKeyFromObject(vmi)
	return c
}

func (c *cluster) live() *v1.VirtualMachineInstance {
	c.t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	if err := c.Get(c.t.Context(), c.key, vmi); err != nil {
		c.t.Fatal(err)
	}
	return vmi
}

// apply writes a status as manager and fails the test unless exactly want writes were sent.
func (c *cluster) apply(manager string, want int, st v1.VirtualMachineInstanceStatus, opts ...apply.Option) {
	c.t.Helper()
	c.writes = 0
	if err := (apply.Applier{Client: c, Manager: manager}).Status(c.t.Context(), c.live(), &st, opts...); err != nil {
		c.t.Fatalf("applying as %s: %v", manager, err)
	}
	if c.writes != want {
		c.t.Fatalf("applying as %s: %d writes, want %d", manager, c.writes, want)
	}
}

func scheduled(conditions ...condition.Want) v1.VirtualMachineInstanceStatus {
	at := metav1.NewTime(time.Unix(1000, 0))
	return v1.VirtualMachineInstanceStatus{
		Phase:                     v1.Scheduled,
		PhaseTransitionTimestamps: []v1.VirtualMachineInstancePhaseTransitionTimestamp{{Phase: v1.Scheduled, PhaseTransitionTimestamp: at}},
		NodeName:                  "node-1",
		Conditions:                condition.VMI(at.Time, nil, conditions...),
	}
}

var (
	isReady  = condition.True("Ready", "", "")
	isPaused = condition.True("Paused", "PausedByUser", "")
)

func TestTheSameAgainIsNotWritten(t *testing.T) {
	c := start(t)
	c.apply("controller", 0, v1.VirtualMachineInstanceStatus{})
	c.apply("controller", 1, scheduled(isReady))
	c.apply("controller", 0, scheduled(isReady))
}

func TestWhatIsNoLongerSaidGoes(t *testing.T) {
	c := start(t)
	c.apply("controller", 1, scheduled(isReady, isPaused))
	c.apply("controller", 1, scheduled(isReady))
	vmi := c.live()
	if n := len(vmi.Status.Conditions); n != 1 || vmi.Status.Conditions[0].Type != "Ready" {
		t.Errorf("conditions: got %+v, want Ready alone", vmi.Status.Conditions)
	}
	c.apply("controller", 1, v1.VirtualMachineInstanceStatus{Phase: v1.Scheduled})
	c.apply("controller", 0, v1.VirtualMachineInstanceStatus{Phase: v1.Scheduled})
	if node := c.live().Status.NodeName; node != "" {
		t.Errorf("nodeName: got %q, want none", node)
	}
}

func TestManagersKeepTheirOwnConditions(t *testing.T) {
	c := start(t)
	c.apply("controller", 1, scheduled(isReady))
	c.apply("agent", 1, v1.VirtualMachineInstanceStatus{Conditions: condition.VMI(time.Unix(1000, 0), nil, isPaused)})
	c.apply("controller", 0, scheduled(isReady))
	c.apply("agent", 1, v1.VirtualMachineInstanceStatus{})
	if got := c.live().Status.Conditions; len(got) != 1 || got[0].Type != "Ready" || got[0].Status != k8sv1.ConditionTrue {
		t.Errorf("conditions: got %+v, want Ready alone", got)
	}
}

func TestAPhaseIsHandedOverByForceOnce(t *testing.T) {
	c := start(t)
	stale := scheduled()
	c.apply("controller", 1, stale)
	running := v1.VirtualMachineInstanceStatus{Phase: v1.Running}
	c.apply("agent", 1, running, apply.Force())
	err := (apply.Applier{Client: c, Manager: "controller"}).Status(t.Context(), c.live(), &stale)
	if !apierrors.IsConflict(err) {
		t.Fatalf("applying a phase that was handed over: got %v, want a conflict", err)
	}
	controller := apply.Applier{Client: c, Manager: "controller"}
	if controller.Owns(c.live(), "status", "status", "phase") {
		t.Error("the phase is still the controller's")
	}
	if agent := (apply.Applier{Client: c, Manager: "agent"}); !agent.Owns(c.live(), "status", "status", "phase") {
		t.Error("the phase isn't the agent's")
	}
	stale.Phase = ""
	c.apply("controller", 0, stale)
	if phase := c.live().Status.Phase; phase != v1.Running {
		t.Errorf("phase: got %s, want Running", phase)
	}
}

func TestKeptZeroValuesAreWritten(t *testing.T) {
	c := start(t)
	st := v1.VirtualMachineInstanceStatus{VolumeStatus: []v1.VolumeStatus{{Name: "root"}}}
	c.apply("agent", 1, st, apply.Keep("volumeStatus.target"))
	c.apply("agent", 0, st, apply.Keep("volumeStatus.target"))
}

func TestANamesakeIsNotWritten(t *testing.T) {
	c := start(t)
	old := c.live()
	if err := c.Delete(t.Context(), c.live()); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: c.key.Namespace, Name: c.key.Name}}); err != nil {
		t.Fatal(err)
	}
	a, st := apply.Applier{Client: c, Manager: "controller"}, scheduled()
	if err := a.Status(t.Context(), old, &st); !apierrors.IsConflict(err) {
		t.Errorf("status: got %v, want a conflict", err)
	}
	if err := a.Metadata(t.Context(), old, apply.Metadata{Labels: map[string]string{"a": "b"}}); !apierrors.IsConflict(err) {
		t.Errorf("labels: got %v, want a conflict", err)
	}
}

func TestTwoWritesOfOneRound(t *testing.T) {
	c := start(t)
	live, a, st := c.live(), apply.Applier{Client: c, Manager: "controller"}, scheduled()
	if err := a.Metadata(t.Context(), live, apply.Metadata{Labels: map[string]string{"a": "b"}}); err != nil {
		t.Fatal(err)
	}
	if err := a.Status(t.Context(), live, &st); err != nil {
		t.Error(err)
	}
}

func TestFinalizersAndLabels(t *testing.T) {
	c := start(t)
	a := apply.Applier{Client: c, Manager: "controller"}
	m := apply.Metadata{Labels: map[string]string{"node": "one"}, Finalizers: []string{"example.test/hold"}}
	for _, want := range []int{1, 0} {
		c.writes = 0
		if err := a.Metadata(t.Context(), c.live(), m); err != nil || c.writes != want {
			t.Fatalf("got %d writes and %v, want %d", c.writes, err, want)
		}
	}
	if err := a.Release(t.Context(), c.live(), "example.test/hold"); err != nil {
		t.Fatal(err)
	}
	if vmi := c.live(); len(vmi.Finalizers) != 0 || vmi.Labels["node"] != "one" {
		t.Errorf("finalizers %v and labels %v, want none and node=one", vmi.Finalizers, vmi.Labels)
	}
}
