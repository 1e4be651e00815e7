package subresource

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/revision"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/instancetype"
)

// maxMachine is the most that a VM may take as a body, in bytes.
const maxMachine = 512 << 10

// expandSpec answers with the VM as it is stored, expanded. What the VM leaves open is what it was when its VMI was
// made, or else what it would be now.
func (s *Server) expandSpec(w http.ResponseWriter, r *http.Request, t Target) error {
	vm, err := s.vm(r.Context(), t)
	if err != nil {
		return err
	}
	full, err := s.expand(r.Context(), vm)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("expanding VirtualMachine %s/%s: %w", t.Namespace, t.Name, err))
	}
	writeJSON(w, http.StatusOK, full)
	return nil
}

// expandVMSpec answers with the VM in the request's body, expanded. It need not exist, and if it does it isn't read.
func (s *Server) expandVMSpec(w http.ResponseWriter, r *http.Request, t Target) error {
	body, err := bodyOf(w, r, maxMachine)
	if err != nil {
		return err
	}
	vm, err := machineFrom(body)
	if err != nil {
		return err
	}
	if vm.Namespace != t.Namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("metadata.namespace: Invalid value: %q: must be %s, the namespace of the request", vm.Namespace, t.Namespace))
	}
	if errs := instancetype.CheckMatchers(vm); len(errs) > 0 {
		return apierrors.NewBadRequest(errs.ToAggregate().Error())
	}
	vm.Status = v1.VirtualMachineStatus{} // the revisions that it names are for the one that is stored
	full, err := s.expand(r.Context(), vm)
	if err != nil {
		return apierrors.NewBadRequest("expanding the VirtualMachine: " + err.Error())
	}
	writeJSON(w, http.StatusOK, full)
	return nil
}

// expand returns the VM with all that its instancetype, its preference and the defaults say, and without what the API
// server noted about its fields.
func (s *Server) expand(ctx context.Context, vm *v1.VirtualMachine) (*v1.VirtualMachine, error) {
	found, err := (revision.Finder{Client: s.Kube, Live: s.Kube}).Find(ctx, vm)
	if err != nil {
		return nil, err
	}
	if found.Missing != nil {
		return nil, errors.New(found.Missing.Message)
	}
	cfg, err := s.Config(ctx)
	if err != nil {
		return nil, err
	}
	vmi, err := s.vmi(ctx, Target{vm.Namespace, vm.Name})
	switch {
	case err == nil && vm.UID != "" && metav1.IsControlledBy(vmi, vm):
		cfg = defaults.Recorded(vmi, cfg)
	case err != nil && !apierrors.IsNotFound(err):
		return nil, err
	}
	full, errs := instancetype.Whole(vm, found.Choice, cfg)
	if len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	full.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "VirtualMachine"}
	full.ManagedFields = nil
	return full, nil
}

// machineFrom reads a VM, as strictly as the API server's schema would.
func machineFrom(body []byte) (*v1.VirtualMachine, error) {
	raw, err := yaml.YAMLToJSON(body)
	if err != nil {
		return nil, apierrors.NewBadRequest("decoding the request's body: " + err.Error())
	}
	vm := &v1.VirtualMachine{}
	wrong := decode(raw, vm)
	if len(wrong) == 0 {
		wrong = decodeMachine(raw)
	}
	if len(wrong) > 0 {
		return nil, malformed(wrong)
	}
	want := metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "VirtualMachine"}
	if vm.TypeMeta != want {
		return nil, malformed([]error{field.NotSupported(field.NewPath("kind"), vm.APIVersion+" "+vm.Kind, []string{want.APIVersion + " " + want.Kind})})
	}
	if vm.Name == "" {
		return nil, malformed([]error{field.Required(field.NewPath("metadata", "name"), "firmware and network addresses are derived from it")})
	}
	if vm.Spec.Template == nil {
		return nil, malformed([]error{field.Required(field.NewPath("spec", "template"), "must hold the machine to run")})
	}
	return vm, nil
}

// decode returns everything that keeps raw from being a v, fields that v lacks among it.
func decode(raw []byte, v any) []error {
	wrong, err := json.UnmarshalStrict(raw, v)
	if err != nil {
		wrong = append(wrong, err)
	}
	return wrong
}

// decodeMachine does that for the template's spec, whose type decodes itself and takes any field.
func decodeMachine(raw []byte) []error {
	type strict v1.VirtualMachineInstanceSpec
	var parts struct {
		Spec struct {
			Template struct{ Spec stdjson.RawMessage }
		}
	}
	if err := stdjson.Unmarshal(raw, &parts); err != nil {
		return []error{err}
	}
	if len(parts.Spec.Template.Spec) == 0 {
		return nil
	}
	wrong := decode(parts.Spec.Template.Spec, &strict{})
	for i := range wrong {
		wrong[i] = fmt.Errorf("spec.template.spec: %w", wrong[i])
	}
	return wrong
}

func malformed(why []error) error {
	err := apierrors.NewBadRequest("Object is not a valid VirtualMachine")
	err.ErrStatus.Details = &metav1.StatusDetails{}
	for _, e := range why {
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Message: e.Error()})
	}
	return err
}
