package vmi

import (
	"context"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/kube/loop"
	"virtstack.io/virtstack/machine/storage"
)

// claimIndex is the index of VMIs by the names of the claims that their volumes read.
const claimIndex = "claims"

func indexClaims(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &v1.VirtualMachineInstance{}, claimIndex, claimsOf)
}

func claimsOf(o client.Object) []string {
	vmi, ok := o.(*v1.VirtualMachineInstance)
	if !ok {
		return nil
	}
	return claimNames(vmi)
}

func claimNames(vmi *v1.VirtualMachineInstance) []string {
	var names []string
	for i := range vmi.Spec.Volumes {
		if name := storage.Claim(&vmi.Spec.Volumes[i]); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// readers returns the VMIs whose volumes read a claim.
func (c *Controller) readers(ctx context.Context, claim client.Object) []reconcile.Request {
	var list v1.VirtualMachineInstanceList
	if err := c.Client.List(ctx, &list, client.InNamespace(claim.GetNamespace()), client.MatchingFields{claimIndex: claim.GetName()}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the VMIs that read a claim", "claim", client.ObjectKeyFromObject(claim))
		return nil
	}
	return loop.Requests(list.Items)
}

// claims reads the claims of a VMI's volumes from the cache; what isn't there is nil.
func (c *Controller) claims(ctx context.Context, vmi *v1.VirtualMachineInstance) (map[string]*k8sv1.PersistentVolumeClaim, error) {
	found := map[string]*k8sv1.PersistentVolumeClaim{}
	for _, name := range claimNames(vmi) {
		claim := &k8sv1.PersistentVolumeClaim{}
		err := c.Client.Get(ctx, types.NamespacedName{Namespace: vmi.Namespace, Name: name}, claim)
		switch {
		case apierrors.IsNotFound(err):
			claim = nil
		case err != nil:
			return nil, fmt.Errorf("reading PersistentVolumeClaim %s of VMI %s: %w", name, vmi.Name, err)
		}
		found[name] = claim
	}
	return found, nil
}

func modes(claims map[string]*k8sv1.PersistentVolumeClaim) podspec.Claims {
	out := podspec.Claims{}
	for name, claim := range claims {
		out[name] = claim != nil && storage.Block(claim.Spec.VolumeMode)
	}
	return out
}
