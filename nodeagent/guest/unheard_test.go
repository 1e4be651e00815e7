package guest

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/nodeagent/link"
)

// A launcher that ends while it is asked for something has failed at nothing: what became of its guest is told by its
// last state and by its container, not by a broken connection.
func TestALauncherThatEndsInACallIsNoFailure(t *testing.T) {
	overdue := func(m *v1.VirtualMachineInstance) {
		m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: time.Now().Add(-time.Hour)}, []string{"example.test/x"}
	}
	for name, tc := range map[string]struct {
		phase guestv1.State_Phase
		vmi   *v1.VirtualMachineInstance
	}{
		"starting": {guestv1.State_PHASE_NOT_STARTED, vmi(v1.Scheduled)},
		"killing":  {guestv1.State_PHASE_RUNNING, vmi(v1.Running, overdue)},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &k8sv1.Pod{}
			pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName = "ns", "launcher", "pod-uid", here
			pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(tc.vmi, v1.VirtualMachineInstanceGroupVersionKind)}
			listener, s := bufconn.Listen(1<<16), grpc.NewServer()
			l := &launcher{phase: tc.phase, asked: make(chan string, 100), end: func() { go s.Stop() }}
			guestv1.RegisterGuestServer(s, l)
			go s.Serve(listener)
			heard := make(chan types.NamespacedName, 10)
			launchers := &link.Launchers{
				Dial:    func(ctx context.Context, _ types.UID) (net.Conn, error) { return listener.DialContext(ctx) },
				Changed: func(vmi types.NamespacedName) { heard <- vmi },
			}
			defer launchers.Close()
			server, told := reader(t, tc.vmi), events.NewFakeRecorder(10)
			c := &Controller{
				Node: here, Cache: reader(t, tc.vmi, pod), Live: server, Status: apply.Applier{Client: server, Manager: Manager},
				Events: told, Launchers: launchers, Network: noNetwork{},
			}
			key, now := client.ObjectKeyFromObject(tc.vmi), time.Now()
			if _, err := c.Round(t.Context(), key, now); err != nil { // begins to listen
				t.Fatal(err)
			}
			<-heard
			again, err := c.Round(t.Context(), key, now)
			if err != nil || !again.Equal(now.Add(time.Second)) {
				t.Errorf("looking again at %v, %v; want a second later and no error", again, err)
			}
			if len(l.asked) != 1 || len(told.Events) != 0 {
				t.Errorf("asked %d times, told %d events", len(l.asked), len(told.Events))
			}
			live := &v1.VirtualMachineInstance{}
			if err := server.Get(t.Context(), key, live); err != nil || len(live.Status.Conditions) != 0 {
				t.Errorf("the status says %+v, %v", live.Status.Conditions, err)
			}
		})
	}
}
