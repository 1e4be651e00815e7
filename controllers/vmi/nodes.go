package vmi

import (
	"context"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"virtstack.io/virtstack/controllers/vmi/plan"
	"virtstack.io/virtstack/kube/loop"
)

// byNode is the index of VMIs by the node that they are on.
const byNode = "status.nodeName"

// nodeOf is the index function of byNode.
func nodeOf(object client.Object) []string {
	vmi, ok := object.(*v1.VirtualMachineInstance)
	if !ok || vmi.Status.NodeName == "" {
		return nil
	}
	return []string{vmi.Status.NodeName}
}

// reachability lets those changes of Nodes through that change what is said of VMIs on them.
func reachability() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return unreachable(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return unreachable(e.ObjectOld) != unreachable(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

func unreachable(object client.Object) bool {
	node, ok := object.(*k8sv1.Node)
	return ok && plan.Unreachable(node)
}

// onNode returns the VMIs that are on a Node.
func (c *Controller) onNode(ctx context.Context, node client.Object) []reconcile.Request {
	var list v1.VirtualMachineInstanceList
	if err := c.Client.List(ctx, &list, client.MatchingFields{byNode: node.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the VMIs of a node", "node", node.GetName())
		return nil
	}
	return loop.Requests(list.Items)
}

// takenCIDs returns the context ids of a node's guests, where a VMI needs one that is none of them.
func (c *Controller) takenCIDs(ctx context.Context, vmi *v1.VirtualMachineInstance, node string) (map[uint32]bool, error) {
	if node == "" || !plan.NeedsCID(vmi) {
		return nil, nil
	}
	var list v1.VirtualMachineInstanceList
	if err := c.Client.List(ctx, &list, client.MatchingFields{byNode: node}); err != nil {
		return nil, fmt.Errorf("listing the VMIs of node %s: %w", node, err)
	}
	taken := map[uint32]bool{}
	for i := range list.Items {
		if id := list.Items[i].Status.VSOCKCID; id != nil {
			taken[*id] = true
		}
	}
	return taken, nil
}

// node reads a Node from the cache; nil if there is none, or no name.
func (c *Controller) node(ctx context.Context, name string) (*k8sv1.Node, error) {
	if name == "" {
		return nil, nil
	}
	node := &k8sv1.Node{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading node %s: %w", name, err)
	}
	return node, nil
}
