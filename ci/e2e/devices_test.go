//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/lab"
)

// withDevices adds devices to a VM, written as in its spec.
func (p place) withDevices(devices string) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) {
		p.must(yaml.UnmarshalStrict([]byte(devices), &vm.Spec.Template.Spec.Domain.Devices))
	}
}

// The guest finds its devices: a TPM 2.0, a ConfigMap as a directory, its node's load, a watchdog, random numbers.
func TestDevices(t *testing.T) {
	p := newPlace(t, "devices")
	settings := &corev1.ConfigMap{ObjectMeta: objectMeta(p.ns, "settings"), Data: map[string]string{"Greeting.txt": "good morning"}}
	p.create(settings)
	p.create(p.vm("web", p.withDevices(`{
		tpm: {}, rng: {}, downwardMetrics: {}, sound: {name: audio}, panicDevices: [{model: pvpanic}],
		watchdog: {name: dog, i6300esb: {action: reset}}, inputs: [{name: tablet, type: tablet, bus: virtio}],
		filesystems: [{name: config, virtiofs: {}}]}`), func(vm *v1.VirtualMachine) {
		v := v1.Volume{Name: "config"}
		v.ConfigMap = &v1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: settings.Name}}
		vm.Spec.Template.Spec.Volumes = append(vm.Spec.Template.Spec.Volumes, v)
	}))
	p.phase("web", v1.Running, 2*time.Minute)
	c := p.shell("web")
	p.asked(c, "echo TPM $(cat /sys/class/tpm/tpm0/tpm_version_major)", "TPM 2")
	p.asked(c, "mount -t virtiofs config /mnt; cat /mnt/Greeting.txt", "good morning")
	p.asked(c, "touch /mnt/x || echo refu''sed", "refused")
	p.asked(c, "ls /sys/class/watchdog/", "watchdog0")
	p.asked(c, "cat /sys/class/misc/hw_random/rng_current", "virtio_rng")
	p.must(c.Send("port=$(grep -l vhostmd /sys/class/virtio-ports/*/name | cut -d/ -f5)\nexec 3<>/dev/$port\n"))
	// The guest prints what it is told until a figure of its own machine, which the command doesn't name.
	p.asked(c, "printf 'GET /metrics/XML\\n\\n' >&3; sed '/context=.vm/q' <&3", "UsedVirtualMemory")
}

// told waits until a VMI's condition Synchronized says that it can't be, and names a field.
func (p place) told(name, field string) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), time.Minute, "VMI "+name+" to name "+field, func(ctx context.Context) (bool, string, error) {
		vmi := &v1.VirtualMachineInstance{}
		err := theLab.Client.Get(ctx, p.key(name), vmi)
		said := "nothing"
		for _, c := range vmi.Status.Conditions {
			if c.Type == v1.VirtualMachineInstanceSynchronized {
				said = c.Message
			}
		}
		return strings.HasPrefix(said, field), said, client.IgnoreNotFound(err)
	}))
}

// What a launcher can't give its guest, or the administrator permits to nobody, is a condition that names the field.
func TestDevicesThatCantBe(t *testing.T) {
	p := newPlace(t, "refused")
	for name, tc := range map[string]struct{ devices, want string }{
		"gpu":      {"{gpus: [{name: a, deviceName: vendor.example/gpu}]}", "spec.domain.devices.gpus[0].deviceName: "},
		"empty-fs": {"{filesystems: [{name: root, virtiofs: {}}]}", "spec.domain.devices.filesystems[0].name: "},
	} {
		p.create(p.vm(name, p.withDevices(tc.devices)))
		p.told(name, tc.want)
	}
}
