package nodeagent

import (
	"context"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"virtstack.io/virtstack/kube/loop"
	"virtstack.io/virtstack/nodeagent/guest"
	"virtstack.io/virtstack/nodeagent/node"
)

// guestsAtOnce is how many VMIs have a round at the same time: starting a guest takes a second, on a busy node more.
const guestsAtOnce = 16

// longestBackoff bounds the pause after errors: what a user or an administrator put right is tried again soon.
const longestBackoff = 30 * time.Second

// news is what did not happen in the API server but asks for a round.
type news struct {
	events chan event.TypedGenericEvent[types.NamespacedName]
}

func newNews() news {
	return news{make(chan event.TypedGenericEvent[types.NamespacedName], 1024)}
}

// tell asks for a round. It waits for room, of which there is plenty once the loop runs.
func (n news) tell(key types.NamespacedName) {
	n.events <- event.TypedGenericEvent[types.NamespacedName]{Object: key}
}

func (n news) source() source.Source {
	return source.TypedChannel(n.events, handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, key types.NamespacedName) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: key}}
	}))
}

func labelLoop(mgr ctrl.Manager, l *node.Labeller, n news) error {
	return ctrl.NewControllerManagedBy(mgr).Named("node").For(&k8sv1.Node{}).
		WatchesRawSource(n.source()).
		WithOptions(options(1)).
		Complete(loop.Reconciler(l))
}

func guestLoop(mgr ctrl.Manager, c *guest.Controller, n news) error {
	return ctrl.NewControllerManagedBy(mgr).Named("guest").For(&v1.VirtualMachineInstance{}).
		Watches(&k8sv1.Pod{}, handler.EnqueueRequestsFromMapFunc(ownerOf)).
		WatchesRawSource(n.source()).
		WithOptions(options(guestsAtOnce)).
		Complete(loop.Reconciler(c))
}

// ownerOf returns the VMI that controls a launcher Pod.
func ownerOf(_ context.Context, pod client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "VirtualMachineInstance" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: owner.Name}}}
}

func options(atOnce int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: atOnce,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, longestBackoff),
	}
}
