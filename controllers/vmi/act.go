package vmi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/vmi/plan"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/note"
	"virtstack.io/virtstack/machine/names"
)

// errTaken is returned where the name of a launcher Pod is someone else's.
var errTaken = errors.New("a Pod of that name exists and doesn't belong to the VMI; delete it")

func (c *Controller) act(ctx context.Context, actions []plan.Action) error {
	for _, a := range actions {
		if err := c.do(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

func (c *Controller) do(ctx context.Context, a plan.Action) error {
	switch a := a.(type) {
	case plan.HoldVMI:
		return c.applier().Metadata(ctx, a.VMI, metadata(a.VMI.Status.NodeName))
	case plan.LabelNode:
		return c.applier().Metadata(ctx, a.VMI, metadata(a.Node))
	case plan.CreateClaim:
		return c.createClaim(ctx, a)
	case plan.CreatePod:
		return c.createPod(ctx, a)
	case plan.DeletePod:
		return c.deletePod(ctx, a)
	case plan.RelabelPod:
		return client.IgnoreNotFound(c.applier().Relabel(ctx, a.Pod, a.Labels, a.Annotations))
	case plan.OpenGate:
		return c.openGate(ctx, a)
	case plan.ReleaseVMI:
		return client.IgnoreNotFound(c.applier().Release(ctx, a.VMI, v1.VirtualMachineInstanceFinalizer, v1.VirtualMachineControllerFinalizer))
	}
	return fmt.Errorf("no way to do %T", a)
}

// metadata is all that this controller owns of a VMI's: what an apply leaves out is dropped.
func metadata(node string) apply.Metadata {
	m := apply.Metadata{Finalizers: []string{v1.VirtualMachineInstanceFinalizer}}
	if node != "" {
		m.Labels = map[string]string{v1.NodeNameLabel: node}
	}
	return m
}

// createPod makes the Pod, or finds the one that was made before a crash.
func (c *Controller) createPod(ctx context.Context, a plan.CreatePod) error {
	err := c.create(ctx, a)
	if apierrors.IsAlreadyExists(err) {
		found, err := c.pod(ctx, c.Live, a.VMI)
		if err == nil && found == nil {
			return errTaken
		}
		return err
	}
	if apierrors.HasStatusCause(err, k8sv1.NamespaceTerminatingCause) {
		return err
	}
	if err != nil {
		c.Events.Eventf(a.VMI, nil, k8sv1.EventTypeWarning, plan.ReasonFailedCreate, "CreatePod", "%s", note.Of(err))
		return err
	}
	c.Events.Eventf(a.VMI, nil, k8sv1.EventTypeNormal, "SuccessfulCreate", "CreatePod", "Created virtual machine pod %s", a.Pod.Name)
	return nil
}

// deletePod deletes the very Pod that was seen, once: one that has changed since, by a deletion before for one, is looked
// at again.
func (c *Controller) deletePod(ctx context.Context, a plan.DeletePod) error {
	err := c.Client.Delete(ctx, a.Pod, client.Preconditions{UID: &a.Pod.UID, ResourceVersion: &a.Pod.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		c.Events.Eventf(a.VMI, nil, k8sv1.EventTypeWarning, "FailedDelete", "DeletePod", "%s", note.Of(err))
		return err
	}
	c.Events.Eventf(a.VMI, nil, k8sv1.EventTypeNormal, "SuccessfulDelete", "DeletePod", "Deleted virtual machine pod %s: %s", a.Pod.Name, a.Why)
	return nil
}

func (c *Controller) openGate(ctx context.Context, a plan.OpenGate) error {
	condition := k8sv1.PodCondition{
		Type: k8sv1.PodConditionType(names.UnpausedGate), Status: k8sv1.ConditionTrue, Reason: "NotPaused", Message: "the guest isn't paused",
		LastTransitionTime: metav1.NewTime(a.At),
	}
	if a.Paused {
		condition.Status, condition.Reason, condition.Message = k8sv1.ConditionFalse, "Paused", "the guest is paused"
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": a.Pod.UID},
		"status":   map[string]any{"conditions": []k8sv1.PodCondition{condition}},
	})
	if err != nil {
		return err
	}
	pod := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: a.Pod.Namespace, Name: a.Pod.Name}}
	err = c.Client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, body), client.FieldOwner(Manager))
	return client.IgnoreNotFound(err)
}
