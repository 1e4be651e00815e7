// Package node takes nodes out of service whose node agent has fallen silent. The agent puts its node back itself.
package node

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/node/plan"
	"virtstack.io/virtstack/kube/loop"
	"virtstack.io/virtstack/machine/names"
)

// Controller watches the heartbeats.
type Controller struct {
	Client client.Client
	Events events.EventRecorder
}

// Setup adds the controller to a manager.
func (c *Controller) Setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("node").For(&k8sv1.Node{}).Complete(loop.Reconciler(c))
}

// Round does one round for one node.
func (c *Controller) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	node := &k8sv1.Node{}
	err := c.Client.Get(ctx, key, node)
	if apierrors.IsNotFound(err) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	p := plan.For(now, node)
	if p.Unschedulable == "" {
		return p.Recheck, nil
	}
	if err := c.unschedulable(ctx, node); err != nil {
		return time.Time{}, fmt.Errorf("taking node %s out of service: %w", node.Name, err)
	}
	c.Events.Eventf(node, nil, k8sv1.EventTypeNormal, "NodeUnresponsive", "TakeOutOfService", "no more VMs come here: %s", p.Unschedulable)
	return p.Recheck, nil
}

// unschedulable flips the label, unless the node has changed meanwhile: a heartbeat may have come.
func (c *Controller) unschedulable(ctx context.Context, node *k8sv1.Node) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": node.ResourceVersion, "labels": map[string]string{names.Schedulable: "false"},
	}})
	if err != nil {
		return err
	}
	return c.Client.Patch(ctx, node.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("virt-controller-node"))
}
