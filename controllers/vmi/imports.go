package vmi

import (
	"context"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dataVolumes fill claims with disks; a cluster may not have them.
var dataVolumes = schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}

// imports returns the phase of each DataVolume that makes one of the claims, by the claim's name. A claim whose
// DataVolume is gone, or that no DataVolume made, isn't in it: it is as it is.
func imports(ctx context.Context, live client.Reader, claims map[string]*k8sv1.PersistentVolumeClaim) (map[string]string, error) {
	phases := map[string]string{}
	for name, claim := range claims {
		owner := fills(claim)
		if owner == nil {
			continue
		}
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(dataVolumes)
		err := live.Get(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: owner.Name}, found)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && found.GetUID() != owner.UID {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading DataVolume %s/%s: %w", claim.Namespace, owner.Name, err)
		}
		phases[name], _, _ = unstructured.NestedString(found.Object, "status", "phase") // none yet is a phase as well
	}
	return phases, nil
}

// fills returns the DataVolume that made a claim, nil if none did.
func fills(claim *k8sv1.PersistentVolumeClaim) *metav1.OwnerReference {
	if claim == nil {
		return nil
	}
	owner := metav1.GetControllerOf(claim)
	if owner == nil || owner.Kind != dataVolumes.Kind {
		return nil
	}
	if group, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || group.Group != dataVolumes.Group {
		return nil
	}
	return owner
}
