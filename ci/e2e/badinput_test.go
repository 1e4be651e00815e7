//go:build e2e

package e2e

import (
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
)

// What can never be right is refused with the path of the field, the value and what would be right.
func TestRefusedSpecs(t *testing.T) {
	p := newPlace(t, "refused")
	first := uint(1)
	for name, tc := range map[string]struct {
		change func(*v1.VirtualMachineInstanceSpec)
		want   []string
	}{
		"disk without volume": {func(s *v1.VirtualMachineInstanceSpec) { s.Volumes = nil },
			[]string{"spec.template.spec.domain.devices.disks[0].name", "root"}},
		"no memory": {func(s *v1.VirtualMachineInstanceSpec) { q := quantity("0"); s.Domain.Memory.Guest = &q },
			[]string{"spec.template.spec.domain.memory.guest", "0"}},
		"two first disks": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, disk("two"))
			s.Volumes = append(s.Volumes, v1.Volume{Name: "two", VolumeSource: v1.VolumeSource{EmptyDisk: &v1.EmptyDiskSource{Capacity: quantity("1Mi")}}})
			s.Domain.Devices.Disks[0].BootOrder, s.Domain.Devices.Disks[1].BootOrder = &first, &first
		}, []string{"spec.template.spec.domain.devices.disks[1].bootOrder", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := theLab.Client.Create(t.Context(), p.vm("bad", func(vm *v1.VirtualMachine) { tc.change(&vm.Spec.Template.Spec) }))
			if err == nil || !containsAll(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal that says %q", err, tc.want)
			}
		})
	}
}

// What may become right is accepted and shown.
func TestSpecsThatCantRunNow(t *testing.T) {
	p := newPlace(t, "cannot")
	p.create(p.vm("image", func(vm *v1.VirtualMachine) {
		vm.Spec.Template.Spec.Volumes[0].ContainerDisk.Image = "localhost/no-such-image:1"
	}))
	p.create(p.vm("node", func(vm *v1.VirtualMachine) {
		vm.Spec.Template.Spec.NodeSelector = map[string]string{"no-such": "label"}
	}))
	p.status("image", v1.VirtualMachineStatusErrImagePull, time.Minute)
	p.status("node", v1.VirtualMachineStatusUnschedulable, time.Minute)
	for _, name := range []string{"image", "node"} {
		p.must(theLab.Client.Delete(t.Context(), p.vm(name)))
		p.gone(&v1.VirtualMachine{}, name, time.Minute)
	}
}
