package vmi

import (
	"context"
	"errors"
	"fmt"
	"slices"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/controllers/vmi/plan"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
)

// errNotState is returned where the name of a claim for a machine's state is someone else's.
var errNotState = errors.New("a PersistentVolumeClaim of that name exists and doesn't belong to the VM; delete it")

// missingState returns the claim that has to be made for the state of a VMI's machine; nil: none has to be.
func (c *Controller) missingState(ctx context.Context, vmi *v1.VirtualMachineInstance, cfg config.Config) (*k8sv1.PersistentVolumeClaim, error) {
	want := podspec.StateClaim(vmi, cfg)
	if want == nil {
		return nil, nil
	}
	err := c.Client.Get(ctx, client.ObjectKeyFromObject(want), &k8sv1.PersistentVolumeClaim{})
	switch {
	case apierrors.IsNotFound(err):
		return want, nil
	case err != nil:
		return nil, fmt.Errorf("reading PersistentVolumeClaim %s of VMI %s: %w", want.Name, vmi.Name, err)
	}
	return nil, nil
}

// createClaim makes the claim of a machine's state, or finds the one that was made before a crash.
func (c *Controller) createClaim(ctx context.Context, a plan.CreateClaim) error {
	err := c.Client.Create(ctx, a.Claim.DeepCopy(), client.FieldOwner(Manager))
	if apierrors.IsAlreadyExists(err) {
		found := &k8sv1.PersistentVolumeClaim{}
		err = c.Live.Get(ctx, client.ObjectKeyFromObject(a.Claim), found)
		owner := names.StateOwner(a.VMI).UID
		if err == nil && !slices.ContainsFunc(found.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner }) {
			err = errNotState
		}
	}
	if err == nil || apierrors.HasStatusCause(err, k8sv1.NamespaceTerminatingCause) {
		return err
	}
	return plan.StateError{Err: err}
}
