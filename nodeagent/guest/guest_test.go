package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/machine/cpumask"
	"virtstack.io/virtstack/nodeagent/link"
)

const here = "node-a"

// launcher says one thing and notes what it is asked to do.
type launcher struct {
	guestv1.UnimplementedGuestServer
	phase guestv1.State_Phase
	asked chan string
	// end, if there is one, ends the launcher in the middle of a call.
	end func()
}

func (l *launcher) ends(ctx context.Context) {
	if l.end != nil {
		l.end()
		<-ctx.Done()
	}
}

func (l *launcher) Watch(_ *guestv1.WatchRequest, s grpc.ServerStreamingServer[guestv1.State]) error {
	if err := s.Send(&guestv1.State{Phase: l.phase}); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

func (l *launcher) SyncVirtualMachine(ctx context.Context, _ *guestv1.SyncVirtualMachineRequest) (*guestv1.SyncVirtualMachineResponse, error) {
	l.asked <- "sync"
	l.ends(ctx)
	return &guestv1.SyncVirtualMachineResponse{Protocol: guestv1.Protocol}, nil
}

func (l *launcher) Act(ctx context.Context, _ *guestv1.ActRequest) (*guestv1.ActResponse, error) {
	l.asked <- "act"
	l.ends(ctx)
	return &guestv1.ActResponse{Again: len(l.asked) > 1}, nil
}

// Behind and Prefer are those of VCPUs: whoever is asked about is behind.
func (l *launcher) Behind(types.UID, cpumask.Mask) (bool, error) { return true, nil }

func (l *launcher) Prefer(_ types.UID, mask cpumask.Mask) error {
	l.asked <- fmt.Sprintf("prefer %v", mask)
	return nil
}

type noNetwork struct{}

func (noNetwork) Advertise(context.Context, *k8sv1.Pod, *v1.VirtualMachineInstance) error { return nil }
func (noNetwork) Advertised(types.UID) bool                                               { return true }
func (noNetwork) Keep(types.NamespacedName, ...types.UID)                                 {}

func (noNetwork) Prepare(context.Context, *k8sv1.Pod, *v1.VirtualMachineInstance) ([]*guestv1.Interface, error) {
	return nil, nil
}

// memory tells what is asked of the launcher's.
type memory chan string

func (m memory) LockMemory(context.Context, types.UID, uint64) error {
	m <- "lock"
	return nil
}

func vmi(phase v1.VirtualMachineInstancePhase, changes ...func(*v1.VirtualMachineInstance)) *v1.VirtualMachineInstance {
	m := &v1.VirtualMachineInstance{}
	m.Namespace, m.Name, m.UID = "ns", "web", "vmi-uid"
	m.Status.Phase, m.Status.NodeName = phase, here
	m.Status.ActivePods = map[types.UID]string{"pod-uid": here}
	for _, change := range changes {
		change(m)
	}
	return m
}

func deleting(m *v1.VirtualMachineInstance) {
	m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.test/x"}
}

func reader(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithIndex(&k8sv1.Pod{}, OwnerIndex, Owner).WithObjects(objects...).Build()
}

// round does rounds with what the cache and the API server say until the launcher has been heard of and once more, and
// returns what the launcher was asked.
func round(t *testing.T, phase guestv1.State_Phase, cached *v1.VirtualMachineInstance, live ...client.Object) []string {
	t.Helper()
	pod := &k8sv1.Pod{}
	pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName = "ns", "launcher", "pod-uid", here
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cached, v1.VirtualMachineInstanceGroupVersionKind)}
	l := &launcher{phase: phase, asked: make(chan string, 10)}
	listener := bufconn.Listen(1 << 16)
	s := grpc.NewServer()
	guestv1.RegisterGuestServer(s, l)
	go s.Serve(listener)
	defer s.Stop()
	heard := make(chan types.NamespacedName, 10)
	launchers := &link.Launchers{
		Dial:    func(ctx context.Context, _ types.UID) (net.Conn, error) { return listener.DialContext(ctx) },
		Changed: func(vmi types.NamespacedName) { heard <- vmi },
	}
	defer launchers.Close()
	server := reader(t, live...)
	c := &Controller{
		Node: here, Cache: reader(t, cached, pod), Live: server, Status: apply.Applier{Client: server, Manager: Manager},
		Events: events.NewFakeRecorder(10), Launchers: launchers, Network: noNetwork{}, Memory: memory(l.asked), VCPUs: l,
	}
	key := client.ObjectKeyFromObject(cached)
	for i := range 2 {
		if _, err := c.Round(t.Context(), key, time.Now()); err != nil {
			t.Logf("round: %v", err)
		}
		if i == 0 { // it begins to listen
			<-heard
		}
	}
	close(l.asked)
	var asked []string
	for a := range l.asked {
		asked = append(asked, a)
	}
	return asked
}

// Design §7.10 and §7.1: what the cache says is asked of the API server before a guest is stopped or started.
func TestNothingIsStoppedOrStartedOnTheCachesWord(t *testing.T) {
	other := func(m *v1.VirtualMachineInstance) { m.UID = "another-uid" }
	moved := func(m *v1.VirtualMachineInstance) { m.Status.NodeName = "node-b" }
	otherPod := func(m *v1.VirtualMachineInstance) { m.Status.ActivePods = map[types.UID]string{"other": here} }
	device := func(m *v1.VirtualMachineInstance) {
		m.Spec.Domain.Devices.HostDevices = []v1.HostDevice{{Name: "card", DeviceName: "vendor.example/card"}}
	}
	for name, tc := range map[string]struct {
		phase  guestv1.State_Phase
		cached *v1.VirtualMachineInstance
		live   []client.Object
		want   string
	}{
		"deleted":                      {guestv1.State_PHASE_RUNNING, vmi(v1.Running, deleting), []client.Object{vmi(v1.Running, deleting)}, "act"},
		"deleted, and gone":            {guestv1.State_PHASE_RUNNING, vmi(v1.Running, deleting), nil, "act"},
		"deleted, and made again":      {guestv1.State_PHASE_RUNNING, vmi(v1.Running, deleting), []client.Object{vmi(v1.Pending, other)}, "act"},
		"not deleted in truth":         {guestv1.State_PHASE_RUNNING, vmi(v1.Running, deleting), []client.Object{vmi(v1.Running)}, ""},
		"scheduled":                    {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled), []client.Object{vmi(v1.Scheduled)}, "sync"},
		"scheduled with a device":      {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled, device), []client.Object{vmi(v1.Scheduled, device)}, "lock"},
		"scheduled, deleted meanwhile": {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled), []client.Object{vmi(v1.Scheduled, deleting)}, ""},
		"scheduled, gone meanwhile":    {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled), nil, ""},
		"scheduled, another by now":    {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled), []client.Object{vmi(v1.Scheduled, other)}, ""},
		"scheduled, moved meanwhile":   {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled), []client.Object{vmi(v1.Scheduled, moved)}, ""},
		"scheduled, failed meanwhile":  {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled), []client.Object{vmi(v1.Failed)}, ""},
		"scheduled with another Pod":   {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled), []client.Object{vmi(v1.Scheduled, otherPod)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if asked := round(t, tc.phase, tc.cached, tc.live...); len(asked) > 0 {
				got = asked[0]
			}
			if got != tc.want {
				t.Errorf("the launcher was asked to %q, want %q", got, tc.want)
			}
		})
	}
}

func TestKVMIsUsedWhereThePodWasGivenIt(t *testing.T) {
	pod := &k8sv1.Pod{}
	pod.Spec.Containers = []k8sv1.Container{{Name: "compute"}}
	if asksForKVM(pod) {
		t.Error("a Pod without the device")
	}
	pod.Spec.Containers[0].Resources.Limits = k8sv1.ResourceList{"devices.kubevirt.io/kvm": resource.MustParse("1")}
	if !asksForKVM(pod) {
		t.Error("a Pod with the device")
	}
}

func TestRealtimeGuestsComeFirst(t *testing.T) {
	for spec, want := range map[string][]string{
		"{dedicatedCpuPlacement: true, realtime: {mask: '0-1,^0'}}": {"prefer map[1:true]"},
		"{dedicatedCpuPlacement: true, realtime: {}}":               {"prefer map[]"},
		"{dedicatedCpuPlacement: true}":                             nil,
		"{realtime: {}}":                                            nil, // which admission refuses
	} {
		m := vmi(v1.Running)
		m.Spec.Domain.CPU = &v1.CPU{}
		if err := yaml.UnmarshalStrict([]byte(spec), m.Spec.Domain.CPU); err != nil {
			t.Fatal(err)
		}
		got := round(t, guestv1.State_PHASE_RUNNING, m, m)
		if !slices.Equal(slices.Compact(got), want) {
			t.Errorf("%s: asked %v, want %v", spec, got, want)
		}
	}
}
