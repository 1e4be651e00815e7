package subresource

import (
	"context"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/subresource/plan"
)

// pause stops the CPUs of a guest: 200 says that they stand still. The VMI's condition follows a moment later.
func (s *Server) pause(w http.ResponseWriter, r *http.Request, t Target) error {
	var o v1.PauseOptions
	if err := options(w, r, &o); err != nil {
		return err
	}
	return s.asked(r.Context(), t, request{"pause", o.DryRun, func(_ context.Context, vmi *v1.VirtualMachineInstance) error { return plan.Pause(vmi) }})
}

// unpause lets a paused guest go on.
func (s *Server) unpause(w http.ResponseWriter, r *http.Request, t Target) error {
	var o v1.UnpauseOptions
	if err := options(w, r, &o); err != nil {
		return err
	}
	return s.asked(r.Context(), t, request{"unpause", o.DryRun, func(ctx context.Context, vmi *v1.VirtualMachineInstance) error {
		vm, err := s.ownerOf(ctx, vmi)
		if err != nil {
			return err
		}
		return plan.Unpause(vm, vmi)
	}})
}

// request is what the node agent of a VMI is asked for, unless refuse says why not.
type request struct {
	verb   string
	dryRun []string
	refuse func(context.Context, *v1.VirtualMachineInstance) error
}

func (s *Server) asked(ctx context.Context, t Target, q request) error {
	if err := knownDryRun(q.dryRun); err != nil {
		return err
	}
	vmi, err := s.vmi(ctx, t)
	if err != nil {
		return err
	}
	if err := q.refuse(ctx, vmi); err != nil || slices.Contains(q.dryRun, metav1.DryRunAll) {
		return err
	}
	return s.Agents.Ask(ctx, vmi, q.verb)
}

// ownerOf returns the VM that a VMI is of; nil: it is nobody's, or the VM has gone.
func (s *Server) ownerOf(ctx context.Context, vmi *v1.VirtualMachineInstance) (*v1.VirtualMachine, error) {
	vm, err := s.vm(ctx, Target{vmi.Namespace, vmi.Name})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil || plan.Look(vm, vmi).Namesake {
		return nil, err
	}
	return vm, nil
}
