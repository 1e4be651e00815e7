package vm

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"virtstack.io/virtstack/controllers/vm/plan"
)

// What the API server says against the VMI names the VMI's fields; the VM's owner is told of the VM's.
func TestARefusedVMIIsToldWithTheVMsPaths(t *testing.T) {
	refusal := apierrors.NewInvalid(v1.VirtualMachineInstanceGroupVersionKind.GroupKind(), "web",
		field.ErrorList{field.Required(field.NewPath("spec", "volumes").Index(0).Child("name"), "must be given")})
	told := events.NewFakeRecorder(1)
	c := &Controller{Events: told, Client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refusal },
	}).Build()}
	err := c.act(t.Context(), &v1.VirtualMachine{}, []plan.Action{plan.StartVMI{VMI: &v1.VirtualMachineInstance{}}})
	const want = "spec.template.spec.volumes[0].name: Required value"
	if err == nil || !strings.Contains(err.Error(), want) || !apierrors.IsInvalid(err) {
		t.Errorf("the condition will say %v", err)
	}
	if event := <-told.Events; !strings.Contains(event, want) {
		t.Errorf("the event says %q", event)
	}
}
