package plan_test

import (
	"slices"
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/change"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
)

// What a plan of a commit says of a VM is what the controller then does: machine/change decides for both.
func TestTheControllerDoesWhatAPlanSays(t *testing.T) {
	is := vm(v1.RunStrategyAlways)
	is.Spec.Template.ObjectMeta.Labels = map[string]string{"color": "blue", "shape": "round"}
	is.Spec.Template.Spec.Volumes = []v1.Volume{containerDisk("a"), containerDisk("b")}
	for name, tc := range map[string]struct {
		commit func(*v1.VirtualMachine)
		class  change.Class
	}{
		"nothing":     {func(*v1.VirtualMachine) {}, change.None},
		"order":       {func(vm *v1.VirtualMachine) { slices.Reverse(vm.Spec.Template.Spec.Volumes) }, change.None},
		"a label":     {func(vm *v1.VirtualMachine) { vm.Spec.Template.ObjectMeta.Labels = map[string]string{"color": "red"} }, change.Hot},
		"a host name": {func(vm *v1.VirtualMachine) { vm.Spec.Template.Spec.Hostname = "other" }, change.Restart},
		"a disk": {func(vm *v1.VirtualMachine) {
			vm.Spec.Template.Spec.Volumes = append([]v1.Volume{containerDisk("c")}, vm.Spec.Template.Spec.Volumes...)
		}, change.Restart},
		"halted": {func(vm *v1.VirtualMachine) { *vm.Spec.RunStrategy = v1.RunStrategyHalted }, change.Stop},
		"manual": {func(vm *v1.VirtualMachine) { *vm.Spec.RunStrategy = v1.RunStrategyManual }, change.None},
	} {
		t.Run(name, func(t *testing.T) {
			want := is.DeepCopy()
			want.Generation++
			tc.commit(want)
			cfg := config.From(nil)
			d := change.VM(change.Seen{
				Is: change.Side{VM: is, VMI: defaults.VMI(is, cfg)}, Want: change.Side{VM: want, VMI: defaults.VMI(want, cfg)}, Runs: true,
			})
			if did := done(is, want, cfg); d.Class != tc.class || did != tc.class {
				t.Errorf("planned %s, done %s, want %s: %+v", d.Class, did, tc.class, d.Fields)
			}
		})
	}
}

func containerDisk(name string) v1.Volume {
	return v1.Volume{Name: name, VolumeSource: v1.VolumeSource{ContainerDisk: &v1.ContainerDiskSource{Image: "r.example/x:1"}}}
}

// done says what the controller does to the guest of is once the VM is want.
func done(is, want *v1.VirtualMachine, cfg config.Config) change.Class {
	running := defaults.VMI(is, cfg)
	running.UID, running.Status.Phase = "vmi", v1.Running
	p := plan.For(epoch, plan.Seen{VM: want, VMI: running, Config: cfg, Labels: []string{"color", "shape"}})
	classes := []change.Class{change.None}
	for _, a := range p.Actions {
		switch a.(type) {
		case plan.StopVMI:
			classes = append(classes, change.Stop)
		case plan.RelabelVMI:
			classes = append(classes, change.Hot)
		}
	}
	if c := find(p.Status, string(v1.VirtualMachineRestartRequired)); c != nil && strings.Contains(c.Message, "spec.template.spec") {
		classes = append(classes, change.Restart)
	}
	return change.Worst(classes...)
}
