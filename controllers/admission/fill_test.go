package admission_test

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/admission"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/validate"
)

// bare is a VMI whose second volume has no disk. Source: kubevirt/kubevirt#5556.
const bare = `{metadata: {%s}, spec: {domain: {memory: {guest: 1.5Gi}, cpu: {cores: 2}, devices: {disks: [{name: root, disk: {bus: virtio}}]}},
	volumes: [{name: root, containerDisk: {image: "guest.example.test/tiny:1"}}, {name: scratch, emptyDisk: {capacity: 0.5Gi}}]}}`

// filled returns the spec that the answer to a new VMI makes of it, as JSON and read; none if it is left as it is.
func filled(t *testing.T, text string) (string, *v1.VirtualMachineInstanceSpec) {
	t.Helper()
	r := request(t, somebody, text, "")
	r.Kind.Kind, r.Namespace = "VirtualMachineInstance", "a"
	got := ask(t, admission.FillPath, r)
	if !got.Allowed {
		t.Fatalf("refused: %+v", got.Result)
	}
	if got.Patch == nil {
		return "", nil
	}
	var patch []struct {
		Op, Path string
		Value    json.RawMessage
	}
	spec := &v1.VirtualMachineInstanceSpec{}
	if err := json.Unmarshal(got.Patch, &patch); err != nil || len(patch) != 1 || patch[0].Path != "/spec" || *got.PatchType != admissionv1.PatchTypeJSONPatch {
		t.Fatalf("got patch %s: %v", got.Patch, err)
	}
	if err := json.Unmarshal(patch[0].Value, spec); err != nil {
		t.Fatal(err)
	}
	return string(patch[0].Value), spec
}

// Case 12: the defaults of a VMI that no VM made are in the VMI, and nothing that its author wrote is spelled anew.
func TestABareInstanceKeepsItsDefaults(t *testing.T) {
	text, spec := filled(t, strings.Replace(bare, "%s", "name: web, namespace: a", 1))
	for _, kept := range []string{`"guest":"1.5Gi"`, `"capacity":"0.5Gi"`, `"cores":2`} {
		if !strings.Contains(text, kept) {
			t.Errorf("the author's %s is gone: %s", kept, text)
		}
	}
	d := spec.Domain
	if len(d.Devices.Disks) != 2 || d.Devices.Disks[1].Name != "scratch" || d.Devices.Disks[1].Disk.Bus != v1.DiskBusSATA || d.Devices.Disks[0].Disk.Bus != v1.DiskBusVirtio {
		t.Errorf("got disks %+v", d.Devices.Disks)
	}
	if spec.Architecture == "" || d.Machine.Type == "" || len(spec.Networks) != 1 || len(d.Devices.Interfaces) != 1 || d.Firmware.UUID == "" {
		t.Errorf("got %s", text)
	}
	whole := &v1.VirtualMachineInstance{Spec: *spec}
	whole.Name, whole.Namespace = "web", "a"
	if again := defaults.Instance(whole, config.From(nil)); len(validate.VMI(field.NewPath("spec"), &again.Spec)) > 0 {
		t.Errorf("what was filled is refused: %v", validate.VMI(field.NewPath("spec"), &again.Spec))
	}
	raw, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if more, _ := filled(t, string(raw)); more != "" {
		t.Errorf("filled twice: %s", more)
	}
}

// Two instances that the API server has yet to name don't become one machine.
func TestAnInstanceWithoutANameGetsNoIdentity(t *testing.T) {
	text, spec := filled(t, strings.Replace(bare, "%s", "generateName: web-, namespace: a", 1))
	if spec.Domain.Firmware != nil && spec.Domain.Firmware.UUID != "" {
		t.Errorf("got %s", text)
	}
}

// What doesn't fit its type is for the review to refuse.
func TestWhatCantBeReadIsLeft(t *testing.T) {
	if text, _ := filled(t, `{spec: {domain: {devices: {disks: [{name: a, bootOrder: -1}]}}}}`); text != "" {
		t.Errorf("got %s", text)
	}
}
