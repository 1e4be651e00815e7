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

// A guest is asked until it listens, by this agent and by the next; that it is asked is told once.
func TestAStopIsToldOnce(t *testing.T) {
	going := vmi(v1.Running, deleting)
	pod := &k8sv1.Pod{}
	pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName = "ns", "launcher", "pod-uid", here
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(going, v1.VirtualMachineInstanceGroupVersionKind)}
	listener, s := bufconn.Listen(1<<16), grpc.NewServer()
	l := &launcher{phase: guestv1.State_PHASE_RUNNING, asked: make(chan string, 100)}
	guestv1.RegisterGuestServer(s, l)
	go s.Serve(listener)
	defer s.Stop()
	told, server := events.NewFakeRecorder(10), reader(t, going)
	for range 2 { // agents
		heard := make(chan types.NamespacedName, 10)
		launchers := &link.Launchers{
			Dial:    func(ctx context.Context, _ types.UID) (net.Conn, error) { return listener.DialContext(ctx) },
			Changed: func(vmi types.NamespacedName) { heard <- vmi },
		}
		c := &Controller{
			Node: here, Cache: reader(t, going, pod), Live: server, Status: apply.Applier{Client: server, Manager: Manager},
			Events: told, Launchers: launchers, Network: noNetwork{},
		}
		for i := range 3 {
			if _, err := c.Round(t.Context(), client.ObjectKeyFromObject(going), time.Now()); err != nil {
				t.Fatal(err)
			}
			if i == 0 { // it begins to listen
				<-heard
			}
		}
		launchers.Close()
	}
	if len(l.asked) < 4 || len(told.Events) != 1 {
		t.Errorf("asked %d times, told %d times; want 4 or more, and 1", len(l.asked), len(told.Events))
	}
}
