//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
	instancetypev1beta1 "kubevirt.io/api/instancetype/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/ci/lab"
)

// kubevirt/kubevirt#14219: a VM that was there before its instancetype waits with a reason, starts by itself, and is as large as the
// instancetype says; nothing of it is written into the VM's spec.
func TestInstancetypeAfterItsVM(t *testing.T) {
	p := newPlace(t, "sized")
	p.create(p.vm("web", func(vm *v1.VirtualMachine) {
		vm.Spec.Instancetype = &v1.InstancetypeMatcher{Kind: "VirtualMachineInstancetype", Name: "pair"}
		vm.Spec.Template.Spec.Domain.Memory = nil
	}))
	p.must(lab.Until(t.Context(), time.Minute, "the VM to say what it waits for", func(ctx context.Context) (bool, string, error) {
		vm := p.stored(ctx, "web")
		for _, c := range vm.Status.Conditions {
			if c.Type == v1.VirtualMachineFailure && c.Status == corev1.ConditionTrue {
				return c.Reason == "FailedFindInstancetype" && strings.Contains(c.Message, "pair"), c.Reason + " " + c.Message, nil
			}
		}
		return false, "no condition", nil
	}))
	size := &instancetypev1beta1.VirtualMachineInstancetype{}
	size.Namespace, size.Name = p.ns, "pair"
	size.Spec.CPU.Guest, size.Spec.Memory.Guest = 2, resource.MustParse("192Mi")
	p.create(size)
	p.phase("web", v1.Running, 2*time.Minute)
	if vm := p.stored(t.Context(), "web"); vm.Generation != 1 || vm.Spec.Template.Spec.Domain.Memory != nil {
		t.Errorf("generation %d, memory %v: the spec isn't ours to write", vm.Generation, vm.Spec.Template.Spec.Domain.Memory)
	}
	c := p.shell("web")
	p.asked(c, "echo there are $(nproc) CPUs", "there are 2 CPUs")
	p.asked(c, "awk '/MemTotal/ { print ($2 > 131072 && $2 < 196608) ? \"as\" \"ked\" : $2 }' /proc/meminfo", "asked")
}

func (p place) stored(ctx context.Context, name string) *v1.VirtualMachine {
	p.t.Helper()
	vm := &v1.VirtualMachine{}
	p.must(theLab.Client.Get(ctx, client.ObjectKey{Namespace: p.ns, Name: name}, vm))
	return vm
}
