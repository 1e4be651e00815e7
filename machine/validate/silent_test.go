package validate_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"virtstack.io/virtstack/machine/validate"
)

// What is accepted and not done is said to who asks for it, with the path of its field, at a VM and at a VMI.
func TestWhatIsAcceptedAndNotDoneIsNamed(t *testing.T) {
	const spec = `{
		evictionStrategy: LiveMigrate,
		domain: {
			cpu: {sockets: 1, maxSockets: 4}, memory: {guest: 1Gi, maxGuest: 4Gi},
			devices: {
				disks: [{name: a, disk: {bus: virtio}, tag: t, changedBlockTracking: true}, {name: b, disk: {bus: virtio}}, {name: c, disk: {bus: virtio}}],
				interfaces: [{name: net, masquerade: {}, tag: t}],
				hostDevices: [{name: card, deviceName: vendor.example/card, tag: t}],
				gpus: [{name: gpu, deviceName: vendor.example/gpu, tag: t}],
			},
		},
		networks: [{name: net, pod: {}}],
		volumes: [{name: a, hostDisk: {path: /d/a.img, type: Disk, shared: true}}, {name: b, persistentVolumeClaim: {claimName: b, hotpluggable: true}},
			{name: c, dataVolume: {name: c, hotpluggable: true}}],
	}`
	fields := []string{
		"domain.memory.maxGuest", "domain.cpu.maxSockets", "evictionStrategy",
		"domain.devices.disks[0].tag", "domain.devices.disks[0].changedBlockTracking", "domain.devices.interfaces[0].tag",
		"domain.devices.gpus[0].tag", "domain.devices.hostDevices[0].tag",
		"volumes[0].hostDisk.shared", "volumes[1].persistentVolumeClaim.hotpluggable", "volumes[2].dataVolume.hotpluggable",
	}
	for _, tc := range []struct{ kind, object, at string }{
		{"VirtualMachine", `{spec: {runStrategy: Always, template: {spec: ` + spec + `}}}`, "spec.template.spec."},
		{"VirtualMachineInstance", `{spec: ` + spec + `}`, "spec."},
	} {
		got, err := validate.Object(schema.GroupKind{Group: "kubevirt.io", Kind: tc.kind}, asJSON(t, tc.object), nil, with("HostDisk", "HostDevices"))
		if err != nil || len(got.Errors) > 0 {
			t.Fatalf("%s: %v, %v", tc.kind, err, got.Errors)
		}
		if len(got.Warnings) != len(fields) {
			t.Errorf("%s: got %q", tc.kind, got.Warnings)
		}
		for i, w := range got.Warnings {
			if i < len(fields) && !strings.HasPrefix(w, tc.at+fields[i]+" has no effect in this version: ") {
				t.Errorf("%s: got %q, want %s", tc.kind, w, fields[i])
			}
		}
	}
}

// A kind that no controller acts on is stored, for a Git tool that brings it; who brings it is told so, once.
// What a Git tool tracks by isn't copied to the Pod, and a Service that selects by it would find nothing: that is said.
func TestLabelsThatAreNotCopiedAreNamed(t *testing.T) {
	object := asJSON(t, `{spec: {runStrategy: Halted, template: {metadata: {labels: {tier: web, app.kubernetes.io/instance: shop}, annotations: {argocd.argoproj.io/tracking-id: shop}}, spec: {domain: {memory: {guest: 64Mi}, devices: {}}}}}}`)
	got, err := validate.Object(schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachine"}, object, nil, with())
	if err != nil || len(got.Errors) > 0 || len(got.Warnings) != 2 {
		t.Fatalf("got %+v, %v; want two warnings", got, err)
	}
	for i, at := range []string{"spec.template.metadata.labels[app.kubernetes.io/instance] is not copied", "spec.template.metadata.annotations[argocd.argoproj.io/tracking-id] is not copied"} {
		if !strings.HasPrefix(got.Warnings[i], at) {
			t.Errorf("got %q, want %q", got.Warnings[i], at)
		}
	}
}

func TestKindsThatNobodyActsOnAreNamed(t *testing.T) {
	kind := schema.GroupKind{Group: "snapshot.kubevirt.io", Kind: "VirtualMachineSnapshot"}
	object := asJSON(t, `{metadata: {name: s}, spec: {source: {apiGroup: kubevirt.io, kind: VirtualMachine, name: web}}}`)
	gated, err := validate.Object(kind, object, nil, with("Snapshot"))
	if err != nil || len(gated.Errors) > 0 || len(gated.Warnings) != 1 || !strings.HasPrefix(gated.Warnings[0], "VirtualMachineSnapshot is stored and has no effect in this version: ") {
		t.Errorf("got %+v, %v", gated, err)
	}
	if again, err := validate.Object(kind, object, object, with("Snapshot")); err != nil || len(again.Warnings) > 0 {
		t.Errorf("a change is warned of again: %q, %v", again.Warnings, err)
	}
}

// A drive without a medium is permitted by its gate, and only a drive.
func TestAnEmptyDriveNeedsItsGate(t *testing.T) {
	kind := schema.GroupKind{Group: "kubevirt.io", Kind: "VirtualMachineInstance"}
	const spec = `{spec: {domain: {memory: {guest: 64Mi}, devices: {disks: [{name: d, %: {bus: sata}}]}}}}`
	for _, tc := range []struct{ device, gate, want string }{
		{"cdrom", "", "spec.domain.devices.disks[0].name: Forbidden: a drive without a volume of its name needs the feature gate DeclarativeHotplugVolumes"},
		{"cdrom", "DeclarativeHotplugVolumes", ""},
		{"disk", "DeclarativeHotplugVolumes", "must be the name of one of the machine's volumes"},
	} {
		got, err := validate.Object(kind, asJSON(t, strings.Replace(spec, "%", tc.device, 1)), nil, with(tc.gate))
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, e := range got.Errors {
			said += e.Error()
		}
		if (said == "") != (tc.want == "") || !strings.Contains(said, tc.want) {
			t.Errorf("%s with gate %q: got %q, want %q", tc.device, tc.gate, said, tc.want)
		}
	}
}
