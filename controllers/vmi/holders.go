package vmi

import (
	"context"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"virtstack.io/virtstack/controllers/vmi/plan"
	"virtstack.io/virtstack/machine/storage"
)

// QEMU's own locks keep two guests off one file, but not off one block device: each Pod has a node of its own for it. So
// no Pod is made while another VMI's may write to a claim of the VMI's, unless both disks are shareable.

// create makes a Pod. Where others read its claims, it does so one at a time and asks the API server for their Pods.
func (c *Controller) create(ctx context.Context, a plan.CreatePod) error {
	rivals, err := c.rivals(ctx, a.VMI)
	if err != nil {
		return err
	}
	if len(rivals) > 0 {
		c.claiming.Lock()
		defer c.claiming.Unlock()
		held, err := c.held(ctx, c.Live, rivals)
		if err != nil {
			return err
		}
		for claim, by := range held {
			// The cache will say so soon.
			return apierrors.NewConflict(k8sv1.Resource("persistentvolumeclaims"), claim, heldBy(by))
		}
	}
	return c.Client.Create(ctx, a.Pod.DeepCopy(), client.FieldOwner(Manager))
}

// heldBy is the VMI that writes to a claim.
type heldBy string

func (h heldBy) Error() string { return "VMI " + string(h) + " writes to it" }

// held returns, for each claim that has a rival with a Pod, as from shows it, the name of that VMI.
func (c *Controller) held(ctx context.Context, from client.Reader, rivals map[string][]*v1.VirtualMachineInstance) (map[string]string, error) {
	held := map[string]string{}
	for claim, others := range rivals {
		for _, other := range others {
			pod, err := c.pod(ctx, from, other)
			if err != nil {
				return nil, err
			}
			if pod != nil && !plan.Finished(pod) {
				held[claim] = other.Name
			}
		}
	}
	return held, nil
}

// rivals returns, for each claim that the VMI is to write to, the other VMIs that do, less those that share it. The
// cache has every VMI for which this process has made a Pod.
func (c *Controller) rivals(ctx context.Context, vmi *v1.VirtualMachineInstance) (map[string][]*v1.VirtualMachineInstance, error) {
	out := map[string][]*v1.VirtualMachineInstance{}
	for claim, shared := range storage.Writes(&vmi.Spec) {
		var list v1.VirtualMachineInstanceList
		if err := c.Client.List(ctx, &list, client.InNamespace(vmi.Namespace), client.MatchingFields{claimIndex: claim}); err != nil {
			return nil, fmt.Errorf("listing the VMIs that read claim %s: %w", claim, err)
		}
		for i := range list.Items {
			other := &list.Items[i]
			theirs, writes := storage.Writes(&other.Spec)[claim]
			if other.UID != vmi.UID && writes && !(shared && theirs) {
				out[claim] = append(out[claim], other)
			}
		}
	}
	return out, nil
}

// heirs returns the VMIs that may have waited for a claim that an ended Pod wrote to.
func (c *Controller) heirs(ctx context.Context, o client.Object) []reconcile.Request {
	pod, ok := o.(*k8sv1.Pod)
	if !ok || pod.DeletionTimestamp == nil && !plan.Finished(pod) {
		return nil
	}
	var out []reconcile.Request
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			claim := &k8sv1.PersistentVolumeClaim{}
			claim.Namespace, claim.Name = pod.Namespace, v.PersistentVolumeClaim.ClaimName
			out = append(out, c.readers(ctx, claim)...)
		}
	}
	return out
}
