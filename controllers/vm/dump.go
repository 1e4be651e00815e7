package vm

import (
	"context"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/note"
)

// askDump writes this controller's part of a VMI's status: the dump that its node agent is asked for, or none.
func (c *Controller) askDump(ctx context.Context, a plan.AskDump) error {
	st := v1.VirtualMachineInstanceStatus{}
	if a.Info != nil {
		st.VolumeStatus = []v1.VolumeStatus{{Name: a.Volume, MemoryDumpVolume: a.Info}}
	}
	return client.IgnoreNotFound(c.applier().Status(ctx, a.VMI, &st))
}

// nameDump annotates a claim with the dump that is on it. The dump is there with or without that: a claim that is gone,
// and one whose annotation is another's to write, end no round.
func (c *Controller) nameDump(ctx context.Context, vm *v1.VirtualMachine, a plan.NameDump) error {
	claim := &k8sv1.PersistentVolumeClaim{}
	err := c.Live.Get(ctx, client.ObjectKey{Namespace: vm.Namespace, Name: a.Claim}, claim)
	if err == nil {
		err = c.applier().Metadata(ctx, claim, apply.Metadata{Annotations: map[string]string{v1.PVCMemoryDumpAnnotation: a.File}})
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		c.Events.Eventf(vm, nil, k8sv1.EventTypeWarning, "MemoryDumpError", "MemoryDump", "%s", note.Of(err))
		return nil
	}
	return err
}
