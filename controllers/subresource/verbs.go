package subresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/subresource/plan"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/machine/names"
)

// attempts is how often a verb is decided anew because its VM changed meanwhile.
const attempts = 4

// undoTimeout bounds the taking back of a write.
const undoTimeout = 10 * time.Second

// decision plans a verb on what is seen.
type decision func(plan.Seen) ([]plan.Action, error)

// decided serves a verb that is decided on the VM as it is, by options O that may ask for a dry run; 202 says that its
// writes are made.
func decided[O any](decide func(plan.Seen, O) ([]plan.Action, error), dryRun func(O) []string, ask asking) verb {
	return func(s *Server, w http.ResponseWriter, r *http.Request, t Target) error {
		var o O
		now := time.Now()
		asked, err := ask(r, now)
		if err != nil {
			return err
		}
		if err := into(w, r, &o); err != nil {
			return err
		}
		err = s.apply(r.Context(), t, dryRun(o), func(seen plan.Seen) ([]plan.Action, error) {
			seen.Now, seen.Asked = now, asked
			return decide(seen, o)
		})
		if err == nil {
			w.WriteHeader(http.StatusAccepted)
		}
		return err
	}
}

// apply decides on the VM as it is now and does what was decided; dryRun sends the writes without effect.
func (s *Server) apply(ctx context.Context, t Target, dryRun []string, decide decision) error {
	if err := knownDryRun(dryRun); err != nil {
		return err
	}
	var err error
	for range attempts {
		if err = s.once(ctx, t, dryRun, decide); !errors.Is(err, errChanged) {
			return err
		}
	}
	return apierrors.NewConflict(v1.Resource("virtualmachine"), t.Name, errChanged)
}

// knownDryRun refuses what isn't none and isn't all.
func knownDryRun(dryRun []string) error {
	if len(dryRun) > 0 && !slices.Equal(dryRun, []string{metav1.DryRunAll}) {
		return apierrors.NewBadRequest(fmt.Sprintf("dryRun: Unsupported value: %q: supported values: %q", dryRun, metav1.DryRunAll))
	}
	return nil
}

// errChanged is returned for a write that was refused because its object isn't as it was seen.
var errChanged = errors.New("the object has been modified; try again")

func (s *Server) once(ctx context.Context, t Target, dryRun []string, decide decision) error {
	vm, err := s.vm(ctx, t)
	if err != nil {
		return err
	}
	vmi, err := s.vmi(ctx, t)
	if apierrors.IsNotFound(err) {
		vmi, err = nil, nil
	}
	if err != nil {
		return err
	}
	cfg, err := s.Config(ctx)
	if err != nil {
		return err
	}
	seen := plan.Look(vm, vmi)
	seen.GitManagers = cfg.GitManagers
	seen.OverrideIsOurs = (apply.Applier{Manager: names.OverrideManager}).Owns(vm, "", "metadata", "annotations", names.RunOverride)
	actions, err := decide(seen)
	if err != nil {
		return err
	}
	for i, a := range actions {
		err := s.act(ctx, a, dryRun)
		if errors.Is(err, errChanged) && i > 0 {
			// The first actions hold: what is seen now is partly our own doing and no ground to decide on.
			return plan.Conflict(vm, "%s: %w", a, err)
		}
		if err != nil {
			return wrapped(a, err)
		}
	}
	return nil
}

// wrapped keeps the refusals of the API server as they are and makes the rest internal errors that say what failed.
func wrapped(a plan.Action, err error) error {
	if errors.Is(err, errChanged) || apierrors.IsConflict(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return err
	}
	return apierrors.NewInternalError(fmt.Errorf("%s: %w", a, err))
}

func (s *Server) act(ctx context.Context, action plan.Action, dryRun []string) error {
	switch a := action.(type) {
	case plan.SetStrategy:
		return changed(s.Kube.Patch(ctx, a.VM.DeepCopy(), client.RawPatch(types.MergePatchType, a.Patch()), patchOptions(dryRun)))
	case plan.Request:
		return s.patchStatus(ctx, a.VM, a.Patch(), dryRun)
	case plan.StartHalted:
		return s.startHalted(ctx, a, dryRun)
	case plan.RetryNow:
		return s.patchStatus(ctx, a.VM, a.Patch(), dryRun)
	case plan.RequestDump:
		return s.patchStatus(ctx, a.VM, a.Patch(), dryRun)
	case plan.SetGrace:
		return changed(s.Kube.Patch(ctx, a.VMI.DeepCopy(), client.RawPatch(types.JSONPatchType, a.Patch()), patchOptions(dryRun)))
	case plan.SetOverride:
		return s.override(ctx, a.VM, a.Patch(), dryRun)
	case plan.DropOverride:
		return s.override(ctx, a.VM, a.Patch(), dryRun)
	case plan.KillLauncher:
		return s.killLauncher(ctx, a.VMI, dryRun)
	}
	return fmt.Errorf("unknown action %T", action)
}

// startHalted leaves word of the pause before the strategy lets the VM controller start the guest, and takes it back
// where the strategy can't be set.
func (s *Server) startHalted(ctx context.Context, a plan.StartHalted, dryRun []string) error {
	vm := a.VM.DeepCopy()
	word := a.Word()
	opts := &client.SubResourcePatchOptions{PatchOptions: *patchOptions(dryRun)}
	if err := s.Kube.Status().Patch(ctx, vm, client.RawPatch(types.JSONPatchType, word.Patch()), opts); err != nil {
		return changed(err)
	}
	err := changed(s.Kube.Patch(ctx, vm.DeepCopy(), client.RawPatch(types.MergePatchType, plan.SetStrategy{VM: vm, Run: true}.Patch()), patchOptions(dryRun)))
	if err == nil || len(dryRun) > 0 {
		return err
	}
	// A request that has been met or replaced meanwhile is no longer ours to take back.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout) // also for a caller that has gone
	defer cancel()
	undo := s.patchStatus(ctx, vm, word.Undo(), nil)
	if errors.Is(undo, errChanged) {
		undo = nil
	}
	if undo != nil {
		return errors.Join(err, fmt.Errorf("taking the request back: %w", undo))
	}
	return err
}

// override applies the annotation of an override, or its absence. One that someone else wrote, Git perhaps, is theirs.
func (s *Server) override(ctx context.Context, vm *v1.VirtualMachine, patch []byte, dryRun []string) error {
	opts := patchOptions(dryRun)
	opts.FieldManager = names.OverrideManager
	err := s.Kube.Patch(ctx, vm.DeepCopy(), client.RawPatch(types.ApplyPatchType, patch), opts)
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return err
	}
	return changed(err)
}

func (s *Server) patchStatus(ctx context.Context, vm *v1.VirtualMachine, patch []byte, dryRun []string) error {
	opts := &client.SubResourcePatchOptions{PatchOptions: *patchOptions(dryRun)}
	return changed(s.Kube.Status().Patch(ctx, vm.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), opts))
}

func patchOptions(dryRun []string) *client.PatchOptions {
	return &client.PatchOptions{FieldManager: manager, DryRun: dryRun}
}

// changed recognises a failed precondition: of a merge patch a conflict; of a JSON patch, whose test failed or that
// removes what is gone, a 422 that names no field, unlike that of an invalid object.
func changed(err error) error {
	if apierrors.IsConflict(err) {
		return errChanged
	}
	var api apierrors.APIStatus
	if errors.As(err, &api) && api.Status().Code == http.StatusUnprocessableEntity && (api.Status().Details == nil || len(api.Status().Details.Causes) == 0) {
		return errChanged
	}
	return err
}

// killLauncher deletes the Pod that the VMI started in, by its derived name and only if it is that VMI's.
func (s *Server) killLauncher(ctx context.Context, vmi *v1.VirtualMachineInstance, dryRun []string) error {
	pod := &k8sv1.Pod{}
	key := client.ObjectKey{Namespace: vmi.Namespace, Name: names.LauncherPod(vmi.Name, vmi.UID)}
	if err := s.Kube.Get(ctx, key, pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(pod, vmi) {
		return fmt.Errorf("pod %s is not the VMI's", pod.Name)
	}
	second := int64(1)
	err := s.Kube.Delete(ctx, pod, &client.DeleteOptions{
		GracePeriodSeconds: &second, DryRun: dryRun,
		Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	return client.IgnoreNotFound(err)
}
