package drivertest

import (
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/domain"
)

// withDevices adds devices, written as in a spec.
func withDevices(t *testing.T, devices string) edit {
	t.Helper()
	socket := short(t)
	return func(d *v1.DomainSpec, facts *domain.Facts) {
		must(t, yaml.UnmarshalStrict([]byte(devices), &d.Devices))
		facts.Sockets.VNC, facts.Sockets.Metrics = socket+"/vnc", socket+"/metrics"
	}
}

func withTPM(t *testing.T) edit {
	return withDevices(t, "{tpm: {}, autoattachGraphicsDevice: false, autoattachSerialConsole: false}")
}

func tpm(t *testing.T, d Driver) { starts(t, d, withTPM(t)) }

// secureTPM is what Windows asks for.
func secureTPM(t *testing.T, d Driver) { starts(t, d, withEFI(t, true), withTPM(t)) }

// emulated are the devices that QEMU makes by itself.
const emulated = `
autoattachSerialConsole: false
rng: {}
sound: {name: audio, model: ac97}
panicDevices: [{model: pvpanic}, {model: isa}]
watchdog: {name: dog, i6300esb: {action: shutdown}}
downwardMetrics: {}
video: {type: virtio}
inputs: [{name: tablet, type: tablet, bus: usb}, {name: keys, type: keyboard, bus: virtio}]
`

func emulatedDevices(t *testing.T, d Driver) { starts(t, d, withDevices(t, emulated)) }

func ichSound(t *testing.T, d Driver) {
	starts(t, d, withDevices(t, "{sound: {name: audio}, video: {type: bochs}, autoattachSerialConsole: false}"))
}

// onRoot puts every device straight on the PCI root.
func onRoot(t *testing.T, d Driver) {
	onRoot := map[string]string{v1.PlacePCIDevicesOnRootComplex: "true", v1.DisablePCIHole64: "true"}
	runs(t, d, annotated(t, onRoot, withDevices(t, emulated)))
}

// manyPorts leaves room for as many interfaces as a machine may have.
func manyPorts(t *testing.T, d Driver) {
	runs(t, d, annotated(t, map[string]string{v1.PciInterfaceSlotCountAnnotation: "30"}, withDevices(t, emulated)))
}

func filesystem(t *testing.T, d Driver) {
	starts(t, d, func(spec *v1.DomainSpec, facts *domain.Facts) {
		spec.Devices.Filesystems = []v1.Filesystem{{Name: "config", Virtiofs: &v1.FilesystemVirtiofs{}}}
		facts.Filesystems = map[string]string{"config": d.Share(t, short(t))}
	})
}
