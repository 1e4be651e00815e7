package bundles_test

import (
	"bytes"
	"os"
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/instancetype"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// read decodes every document of a file; a field that its kind doesn't have fails.
func read[T any](t *testing.T, file string) []*T {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*T
	for _, document := range bytes.Split(data, []byte("\n---\n")) {
		one := new(T)
		if err := yaml.UnmarshalStrict(document, one); err != nil {
			t.Fatalf("%s: %v\n%s", file, err, document)
		}
		out = append(out, one)
	}
	return out
}

func sizes(t *testing.T) []*v1beta1.VirtualMachineClusterInstancetype {
	return read[v1beta1.VirtualMachineClusterInstancetype](t, "instancetypes/instancetypes.yaml")
}

func preferences(t *testing.T) []*v1beta1.VirtualMachineClusterPreference {
	return read[v1beta1.VirtualMachineClusterPreference](t, "instancetypes/preferences.yaml")
}

// A plain VM of any pair expands, unless the size is less than the guest needs.
func TestEveryPairExpands(t *testing.T) {
	for _, size := range sizes(t) {
		for _, p := range preferences(t) {
			t.Run(size.Name+" with "+p.Name, func(t *testing.T) { expand(t, &size.Spec, &p.Spec) })
		}
	}
}

func expand(t *testing.T, size *v1beta1.VirtualMachineInstancetypeSpec, p *v1beta1.VirtualMachinePreferenceSpec) {
	vm := &v1.VirtualMachine{Spec: v1.VirtualMachineSpec{Template: &v1.VirtualMachineInstanceTemplateSpec{}}}
	vm.Spec.Template.Spec.Volumes = []v1.Volume{{Name: "root"}}
	got, errs := instancetype.Expand(vm, instancetype.Choice{Instancetype: size, Preference: p}, config.From(nil))
	tooSmall := size.CPU.Guest < p.Requirements.CPU.Guest || size.Memory.Guest.Cmp(p.Requirements.Memory.Guest) < 0
	if tooSmall != (len(errs) > 0) {
		t.Fatalf("too small: %v; got errors %v", tooSmall, errs)
	}
	if tooSmall {
		return
	}
	if bus := got.Spec.Template.Spec.Domain.Devices.Disks[0].Disk.Bus; bus != p.Devices.PreferredDiskBus {
		t.Errorf("got disk bus %q, want %q", bus, p.Devices.PreferredDiskBus)
	}
}

func TestTheAPIServerTakesThem(t *testing.T) {
	env := kubetest.Start(t)
	var all []client.Object
	for _, one := range sizes(t) {
		all = append(all, one)
	}
	for _, one := range preferences(t) {
		all = append(all, one)
	}
	for _, object := range all {
		if err := env.Client.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("creating %s: %v", object.GetName(), err)
		}
	}
}
