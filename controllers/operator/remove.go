package operator

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/machine/names"
)

const (
	// page is how many objects are listed at a time.
	page = 500
	// atOnce is how many nodes are written in one round.
	atOnce = 50
)

// nodeWriters are the field managers of what components write to nodes: what they own there is ours to take away.
var nodeWriters = []string{"virt-handler", "virt-controller-node"}

// each lists the objects of a kind on the API server, page by page, until visit returns false.
func each(ctx context.Context, live client.Reader, list *metav1.PartialObjectMetadataList, visit func(*metav1.PartialObjectMetadata) bool) error {
	for {
		if err := live.List(ctx, list, client.Limit(page), client.Continue(list.Continue)); err != nil {
			return fmt.Errorf("listing %s: %w", list.Kind, err)
		}
		for i := range list.Items {
			if !visit(&list.Items[i]) {
				return nil
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}

// removeWorkloads deletes the VMs and VMIs that it sees, and no other of their names.
func (c *Controller) removeWorkloads(ctx context.Context) error {
	var errs []error
	for _, kind := range workloadKinds {
		err := each(ctx, c.live, kind.list(), func(o *metav1.PartialObjectMetadata) bool {
			if o.DeletionTimestamp == nil {
				errs = append(errs, c.removeSeen(ctx, o))
			}
			return true
		})
		if !kind.absent(ctx, c.live, err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeSeen deletes the very object that was seen. One that is gone, or another of its name, is looked at again.
func (c *Controller) removeSeen(ctx context.Context, o *metav1.PartialObjectMetadata) error {
	uid := o.UID
	err := c.client.Delete(ctx, o, client.Preconditions{UID: &uid})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting %s %s/%s: %w", o.Kind, o.Namespace, o.Name, err)
}

// marks are the keys of labels and annotations that components have set on a node.
func marks(node client.Object, field string) map[string]*string {
	drop := map[string]*string{}
	have := map[string]map[string]string{"labels": node.GetLabels(), "annotations": node.GetAnnotations()}[field]
	for _, manager := range nodeWriters {
		for _, key := range (apply.Applier{Manager: manager}).Keys(node, field) {
			if _, there := have[key]; there {
				drop[key] = nil
			}
		}
	}
	return drop
}

func nodes() *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	return l
}

// marked returns nodes that carry labels or annotations of ours, no more than one round takes them off.
func marked(ctx context.Context, live client.Reader) ([]*corev1.Node, error) {
	var found []*corev1.Node
	err := each(ctx, live, nodes(), func(o *metav1.PartialObjectMetadata) bool {
		if len(marks(o, "labels"))+len(marks(o, "annotations")) > 0 {
			found = append(found, &corev1.Node{ObjectMeta: o.ObjectMeta})
		}
		return len(found) < atOnce
	})
	return found, err
}

// unmark takes our labels and annotations off nodes: nothing of ours runs that would write them again.
func (c *Controller) unmark(ctx context.Context, nodes []*corev1.Node) error {
	var errs []error
	for _, n := range nodes {
		err := c.status.Relabel(ctx, n, marks(n, "labels"), marks(n, "annotations"))
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("node %s: %w", n.Name, err))
		}
	}
	return errors.Join(errs...)
}

// removeRecords removes what no bundle has: certificates, the inventory, and the leases of components.
func (c *Controller) removeRecords(ctx context.Context) error {
	var errs []error
	remove := func(o client.Object, name string) {
		o.SetNamespace(names.Namespace)
		o.SetName(name)
		errs = append(errs, client.IgnoreNotFound(c.client.Delete(ctx, o)))
	}
	for _, id := range certified {
		remove(&corev1.Secret{}, id.secret)
	}
	remove(&corev1.Secret{}, names.CASecret)
	remove(&corev1.ConfigMap{}, names.CAConfigMap)
	remove(&coordinationv1.Lease{}, names.Controller)
	remove(&corev1.ConfigMap{}, inventoryName)
	return errors.Join(errs...)
}
