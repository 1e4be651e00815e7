//go:build e2e

package e2e

import (
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// withFirmware sets how a machine boots, written as in its spec.
func (p place) withFirmware(firmware string) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) {
		vm.Spec.Template.Spec.Domain.Firmware = &v1.Firmware{}
		p.must(yaml.UnmarshalStrict([]byte(firmware), vm.Spec.Template.Spec.Domain.Firmware))
	}
}

// diskless takes the test guest's disk away.
func diskless(vm *v1.VirtualMachine) {
	s := &vm.Spec.Template.Spec
	s.Volumes, s.Domain.Devices.Disks = nil, nil
}

const kernelBoot = `{kernelBoot: {kernelArgs: "console=ttyS0 quiet from=image", container: {
	image: "localhost/guest:dev", kernelPath: /boot/vmlinuz, initrdPath: /boot/initrd}}}`

// A machine without a disk boots the kernel and the initrd of an image, with the arguments of its spec.
func TestKernelFromAnImage(t *testing.T) {
	p := newPlace(t, "kernel")
	p.create(p.vm("web", p.withFirmware(kernelBoot), diskless))
	p.phase("web", v1.Running, 2*time.Minute)
	p.asked(p.shell("web"), "tr ' ' '\\n' </proc/cmdline | sort | head -3; ls /sys/block | grep -c vd", "from=image\r\nquiet\r\n0")
}

// Case 33: a kernel that isn't in its image is named, and so is one that leads out of it (case 47).
func TestKernelThatIsNotThere(t *testing.T) {
	p := newPlace(t, "kernels")
	p.create(p.vm("looper", diskless, p.withFirmware(`{kernelBoot: {container: {image: "localhost/guest:dev", kernelPath: /boot/no-such-kernel}}}`)))
	p.neverStarts("looper", "spec.template.spec.domain.firmware.kernelBoot.container.kernelPath", `"/boot/no-such-kernel"`, "there is no /boot/no-such-kernel")
	_, err := theLab.Kubectl(t.Context(), "patch", "vm", "looper", "-n", p.ns, "--type=json", "-p",
		`[{"op":"replace","path":"/spec/template/spec/domain/firmware/kernelBoot/container/kernelPath","value":"/boot/vmlinuz"}]`)
	p.must(err)
	p.phase("looper", v1.Running, time.Minute)
}

// A machine with UEFI boots the same disk as one with BIOS.
func TestUEFI(t *testing.T) {
	p := newPlace(t, "uefi")
	p.create(p.vm("web", p.withFirmware("{bootloader: {efi: {secureBoot: false}}}"), guestMemory("256Mi")))
	p.phase("web", v1.Running, 2*time.Minute)
	p.asked(p.shell("web"), "echo bits:$(cat /sys/firmware/efi/fw_platform_size)", "bits:64")
}

func guestMemory(amount string) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) {
		q := quantity(amount)
		vm.Spec.Template.Spec.Domain.Memory.Guest = &q
	}
}
