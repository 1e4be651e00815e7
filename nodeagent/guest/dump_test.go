package guest

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/machine/memorydump"
	"virtstack.io/virtstack/nodeagent/link"
)

// dumper notes the dumps that it is asked for, and answers with err.
type dumper struct {
	launcher
	orders chan *guestv1.DumpMemory
	err    error
}

func (d *dumper) Act(_ context.Context, r *guestv1.ActRequest) (*guestv1.ActResponse, error) {
	d.orders <- r.GetDumpMemory()
	return &guestv1.ActResponse{}, d.err
}

// dumping wants its memory on a claim that its Pod has.
func dumping(at time.Time) (*v1.VirtualMachineInstance, *k8sv1.Pod) {
	asked, source := metav1.NewTime(at), &v1.MemoryDumpVolumeSource{}
	source.ClaimName = "claim"
	m := vmi(v1.Running, func(m *v1.VirtualMachineInstance) {
		m.Spec.Volumes = []v1.Volume{{Name: "dumps", VolumeSource: v1.VolumeSource{MemoryDump: source}}}
		m.Status.VolumeStatus = []v1.VolumeStatus{{Name: "dumps", MemoryDumpVolume: &v1.DomainMemoryDumpInfo{ClaimName: "claim", StartTimestamp: &asked}}}
	})
	pod := &k8sv1.Pod{}
	pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName = "ns", "launcher", "pod-uid", here
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(m, v1.VirtualMachineInstanceGroupVersionKind)}
	pod.Spec.Volumes = []k8sv1.Volume{{Name: "claim-dumps"}}
	return m, pod
}

// A launcher of an older release knows no dumps: its guest runs on, and nothing has failed but the dump.
func TestALauncherIsAskedForADumpAndMayRefuse(t *testing.T) {
	for name, refusal := range map[string]error{"does it": nil, "knows no dumps": status.Error(codes.InvalidArgument, "no act, or one that is not known here")} {
		t.Run(name, func(t *testing.T) {
			m, pod := dumping(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			d := &dumper{launcher: launcher{phase: guestv1.State_PHASE_RUNNING}, orders: make(chan *guestv1.DumpMemory, 10), err: refusal}
			listener, s := bufconn.Listen(1<<16), grpc.NewServer()
			guestv1.RegisterGuestServer(s, d)
			go s.Serve(listener)
			defer s.Stop()
			heard := make(chan types.NamespacedName, 10)
			launchers := &link.Launchers{
				Dial:    func(ctx context.Context, _ types.UID) (net.Conn, error) { return listener.DialContext(ctx) },
				Changed: func(vmi types.NamespacedName) { heard <- vmi },
			}
			defer launchers.Close()
			server := reader(t, m)
			c := &Controller{
				Node: here, Cache: reader(t, m, pod), Live: server, Status: apply.Applier{Client: server, Manager: Manager},
				Events: events.NewFakeRecorder(10), Launchers: launchers, Network: noNetwork{},
			}
			for i := range 2 {
				if _, err := c.Round(t.Context(), client.ObjectKeyFromObject(m), time.Now()); err != nil {
					t.Fatal(err)
				}
				if i == 0 { // it begins to listen
					<-heard
				}
			}
			got := <-d.orders
			if got.GetVolume() != "dumps" || got.GetFile() != "web-dumps-20260102-030405.memory.dump" || time.Duration(got.GetTimeout())*time.Second != memorydump.Patience(&m.Spec) {
				t.Errorf("asked for %v", got)
			}
		})
	}
}
