package plan_test

import (
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
)

const settledSpec = `
runStrategy: Always
template:
  spec:
    domain:
      cpu: {sockets: 1}
      memory: {guest: 1Gi}
      devices:
        disks: [{name: root, disk: {bus: virtio}}]
        interfaces: [{name: net, masquerade: {}}]
    networks: [{name: net, pod: {}}]
    volumes: [{name: root, containerDisk: {image: guest.example.test/tiny:1}}]
`

// Case 24: a restart is asked for because of a field that was committed, by its name, and no longer once that is taken back:
// not because of a default, of another configuration, of metadata, or of what was said before.
func TestARestartIsAskedForByACommitAlone(t *testing.T) {
	machine := vm(v1.RunStrategyAlways)
	if err := yaml.UnmarshalStrict([]byte(settledSpec), &machine.Spec); err != nil {
		t.Fatal(err)
	}
	first := config.From(nil)
	guest := defaults.VMI(machine, first)
	guest.UID, guest.Status.Phase = "vmi", v1.Running
	other := &v1.KubeVirt{}
	other.Spec.Configuration.CPUModel, other.Spec.Configuration.MachineType = "Nehalem", "pc-q35-9.0"
	for _, step := range []struct {
		name   string
		cfg    config.Config
		commit func(*v1.VirtualMachine)
		field  string
	}{
		{"as it was made", first, func(*v1.VirtualMachine) {}, ""},
		{"a device", first, rng, "spec.template.spec.domain.devices.rng"},
		{"its revert", first, func(*v1.VirtualMachine) {}, ""},
		{"a label", first, func(vm *v1.VirtualMachine) { vm.Spec.Template.ObjectMeta.Labels = map[string]string{"a": "b"} }, ""},
		{"other defaults", config.From(other), func(*v1.VirtualMachine) {}, ""},
		{"a device under other defaults", config.From(other), rng, "spec.template.spec.domain.devices.rng"},
		{"its revert under other defaults", config.From(other), func(*v1.VirtualMachine) {}, ""},
	} {
		committed := machine.DeepCopy()
		committed.Generation++
		step.commit(committed)
		p := plan.For(epoch, plan.Seen{VM: committed, VMI: guest, Config: step.cfg})
		machine.Generation, machine.Status = committed.Generation, p.Status // what was said is there in the next step
		said := ""
		if c := find(p.Status, string(v1.VirtualMachineRestartRequired)); c != nil {
			said = c.Message
		}
		if (said == "") != (step.field == "") || !strings.Contains(said, step.field) {
			t.Errorf("%s: says %q, want %q", step.name, said, step.field)
		}
		if strings.Contains(said, "cpu") || find(p.Status, plan.Stalled) != nil {
			t.Errorf("%s: says %q, and %v", step.name, said, p.Status.Conditions)
		}
	}
}

func rng(vm *v1.VirtualMachine) { vm.Spec.Template.Spec.Domain.Devices.Rng = &v1.Rng{} }
