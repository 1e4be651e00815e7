package instancetype

import (
	"reflect"
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/machine/config"
)

func machine(change func(*v1.VirtualMachineInstanceTemplateSpec)) *v1.VirtualMachine {
	vm := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "vm-uid"}}
	vm.Spec.Instancetype = &v1.InstancetypeMatcher{Name: "small"}
	vm.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{}
	vm.Spec.Template.Spec.Volumes = []v1.Volume{{Name: "root"}}
	if change != nil {
		change(vm.Spec.Template)
	}
	return vm
}

func small(vcpus uint32, memory string) *v1beta1.VirtualMachineInstancetypeSpec {
	return &v1beta1.VirtualMachineInstancetypeSpec{
		CPU: v1beta1.CPUInstancetype{Guest: vcpus}, Memory: v1beta1.MemoryInstancetype{Guest: resource.MustParse(memory)},
	}
}

func to[T any](v T) *T { return &v }

func cfg() config.Config { return config.From(nil) }

func TestExpandGivesSizeAndPreferredDevices(t *testing.T) {
	i := small(4, "1Gi")
	i.Memory.OvercommitPercent = 50
	p := &v1beta1.VirtualMachinePreferenceSpec{
		CPU:     &v1beta1.CPUPreferences{PreferredCPUTopology: to(v1beta1.Cores)},
		Devices: &v1beta1.DevicePreferences{PreferredDiskBus: v1.DiskBusVirtio, PreferredInterfaceModel: "e1000"},
	}
	got, errs := Expand(machine(nil), Choice{Instancetype: i, Preference: p}, cfg())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	d := got.Spec.Template.Spec.Domain
	if d.CPU.Sockets != 1 || d.CPU.Cores != 4 || d.CPU.Threads != 1 {
		t.Errorf("cpu: got %+v, want 4 cores", d.CPU)
	}
	if d.Memory.Guest.String() != "1Gi" || d.Resources.Requests.Memory().String() != "512Mi" {
		t.Errorf("memory: got guest %s, request %s, want 1Gi, 512Mi", d.Memory.Guest, d.Resources.Requests.Memory())
	}
	if len(d.Devices.Disks) != 1 || d.Devices.Disks[0].Disk.Bus != v1.DiskBusVirtio {
		t.Errorf("disks: got %+v, want root on virtio", d.Devices.Disks)
	}
	if len(d.Devices.Interfaces) != 1 || d.Devices.Interfaces[0].Model != "e1000" {
		t.Errorf("interfaces: got %+v, want one e1000", d.Devices.Interfaces)
	}
	if got.Spec.Instancetype != nil {
		t.Errorf("the expanded VM still names %+v", got.Spec.Instancetype)
	}
}

func TestTopologies(t *testing.T) {
	spread := func(across v1beta1.SpreadAcross, ratio uint32) topology {
		return topology{v1beta1.Spread, across, ratio}
	}
	for name, tc := range map[string]struct {
		how  topology
		n    uint32
		want [3]uint32
	}{
		"sockets":               {topologyOf(nil), 6, [3]uint32{6, 1, 1}},
		"cores":                 {topology{prefer: v1beta1.Cores}, 6, [3]uint32{1, 6, 1}},
		"threads":               {topology{prefer: v1beta1.Threads}, 6, [3]uint32{1, 1, 6}},
		"one":                   {spread(v1beta1.SpreadAcrossSocketsCoresThreads, 2), 1, [3]uint32{1, 1, 1}},
		"sockets and cores":     {spread(v1beta1.SpreadAcrossSocketsCores, 2), 6, [3]uint32{3, 2, 1}},
		"cores and threads":     {spread(v1beta1.SpreadAcrossCoresThreads, 2), 6, [3]uint32{1, 3, 2}},
		"sockets cores threads": {spread(v1beta1.SpreadAcrossSocketsCoresThreads, 3), 12, [3]uint32{2, 3, 2}},
	} {
		s, c, th := tc.how.split(tc.n)
		if got := [3]uint32{s, c, th}; got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestConflictsAreToldTogether(t *testing.T) {
	vm := machine(func(t *v1.VirtualMachineInstanceTemplateSpec) {
		t.Spec.Domain.CPU = &v1.CPU{Cores: 2, Model: "host-model"}
		t.Spec.Domain.Memory = &v1.Memory{Guest: to(resource.MustParse("1Gi"))}
		t.Spec.Domain.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceCPU: resource.MustParse("1")}
		t.Spec.NodeSelector = map[string]string{"a": "b"}
		t.ObjectMeta.Annotations = map[string]string{"same": "1", "other": "1"}
	})
	i := small(1, "1Gi")
	i.NodeSelector = map[string]string{"c": "d"}
	i.Annotations = map[string]string{"same": "1", "other": "2"}
	out, errs := Expand(vm, Choice{Instancetype: i}, cfg())
	want := []string{
		"spec.template.spec.domain.resources.requests.cpu", "spec.template.spec.domain.cpu.cores",
		"spec.template.spec.domain.memory.guest", "spec.template.spec.nodeSelector", "spec.template.metadata.annotations[other]",
	}
	if got := fields(errs); !reflect.DeepEqual(got, want) || out != nil {
		t.Fatalf("got %v and VM %v, want %v and none", got, out, want)
	}
	for _, path := range want {
		if !strings.Contains(errs[0].Detail, path) {
			t.Errorf("%q doesn't name %s", errs[0].Detail, path)
		}
	}
}

func fields(errs field.ErrorList) []string {
	var out []string
	for _, e := range errs {
		out = append(out, e.Field)
	}
	return out
}

func TestRequirements(t *testing.T) {
	need := &v1beta1.PreferenceRequirements{
		CPU:          &v1beta1.CPUPreferenceRequirement{Guest: 2},
		Memory:       &v1beta1.MemoryPreferenceRequirement{Guest: resource.MustParse("1Gi")},
		Architecture: to("arm64"),
	}
	big := machine(func(t *v1.VirtualMachineInstanceTemplateSpec) {
		t.Spec.Architecture = "arm64"
		t.Spec.Domain.CPU = &v1.CPU{Sockets: 2}
		t.Spec.Domain.Memory = &v1.Memory{Guest: to(resource.MustParse("1Gi"))}
	})
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		i    *v1beta1.VirtualMachineInstancetypeSpec
		want []string
	}{
		"instancetype too small": {machine(nil), small(1, "512Mi"), []string{"spec.instancetype", "spec.instancetype", "spec.template.spec.architecture"}},
		"template too small": {machine(nil), nil, []string{
			"spec.template.spec.domain.cpu.sockets", "spec.template.spec.domain.memory", "spec.template.spec.architecture"}},
		"met": {big, nil, nil},
	} {
		p := &v1beta1.VirtualMachinePreferenceSpec{Requirements: need}
		if got := fields(CheckRequirements(&tc.vm.Spec.Template.Spec, Choice{Instancetype: tc.i, Preference: p}, cfg())); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestASpreadThatDoesNotDivideIsRefused(t *testing.T) {
	p := &v1beta1.VirtualMachinePreferenceSpec{CPU: &v1beta1.CPUPreferences{PreferredCPUTopology: to(v1beta1.Spread)}}
	_, errs := Expand(machine(nil), Choice{Instancetype: small(3, "1Gi"), Preference: p}, cfg())
	if len(errs) != 1 || errs[0].Field != "spec.instancetype" {
		t.Errorf("got %v, want one error at spec.instancetype", errs)
	}
}

func TestPreferencesFillOnlyWhatIsOpen(t *testing.T) {
	vm := machine(func(t *v1.VirtualMachineInstanceTemplateSpec) {
		t.Spec.Domain.Devices.Disks = []v1.Disk{{Name: "root", DiskDevice: v1.DiskDevice{Disk: &v1.DiskTarget{Bus: v1.DiskBusSATA}}}}
		t.Spec.Domain.Firmware = &v1.Firmware{Bootloader: &v1.Bootloader{BIOS: &v1.BIOS{}}}
		t.Spec.Domain.Features = &v1.Features{ACPI: v1.FeatureState{Enabled: to(true)}}
	})
	p := &v1beta1.VirtualMachinePreferenceSpec{
		Devices:  &v1beta1.DevicePreferences{PreferredDiskBus: v1.DiskBusVirtio, PreferredDiskDedicatedIoThread: to(true), PreferredSoundModel: "ac97"},
		Firmware: &v1beta1.FirmwarePreferences{PreferredEfi: &v1.EFI{}},
		Features: &v1beta1.FeaturePreferences{PreferredAcpi: &v1.FeatureState{Enabled: to(false)}},
	}
	got, errs := Expand(vm, Choice{Preference: p}, cfg())
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	d := got.Spec.Template.Spec.Domain
	if d.Devices.Disks[0].Disk.Bus != v1.DiskBusSATA || d.Devices.Disks[0].DedicatedIOThread != nil {
		t.Errorf("disk: got %+v, want SATA without its own thread", d.Devices.Disks[0])
	}
	if d.Firmware.Bootloader.EFI != nil || d.Devices.Sound != nil {
		t.Errorf("got EFI %v, sound %v, want neither", d.Firmware.Bootloader.EFI, d.Devices.Sound)
	}
	if *d.Features.ACPI.Enabled {
		t.Error("preferredAcpi always wins, and didn't")
	}
}

// Expansion is a function: the same twice, its input unchanged, and nothing is left to expand afterwards.
func TestExpansionIsSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vm := machine(func(s *v1.VirtualMachineInstanceTemplateSpec) {
			if rapid.Bool().Draw(t, "efi") {
				s.Spec.Domain.Firmware = &v1.Firmware{Bootloader: &v1.Bootloader{EFI: &v1.EFI{}}}
			}
		})
		p := &v1beta1.VirtualMachinePreferenceSpec{
			CPU: &v1beta1.CPUPreferences{PreferredCPUFeatures: []v1.CPUFeature{{Name: rapid.SampledFrom([]string{"vmx", "sse"}).Draw(t, "feature")}}},
			Devices: &v1beta1.DevicePreferences{
				PreferredDiskBus:               rapid.SampledFrom([]v1.DiskBus{"", v1.DiskBusVirtio, v1.DiskBusSATA}).Draw(t, "bus"),
				PreferredDiskDedicatedIoThread: to(rapid.Bool().Draw(t, "thread")),
				PreferredAutoattachInputDevice: to(rapid.Bool().Draw(t, "input")),
				PreferredInputType:             v1.InputTypeTablet,
			},
			Firmware: &v1beta1.FirmwarePreferences{DeprecatedPreferredUseSecureBoot: to(rapid.Bool().Draw(t, "secure"))},
			Clock:    &v1beta1.ClockPreferences{PreferredTimer: &v1.Timer{}},
		}
		c := Choice{Instancetype: small(rapid.Uint32Range(1, 64).Draw(t, "vcpus"), "1Gi"), Preference: p}
		before := vm.DeepCopy()
		once, errs := Expand(vm, c, cfg())
		twin, _ := Expand(vm, c, cfg())
		if len(errs) > 0 || !equality.Semantic.DeepEqual(once, twin) || !equality.Semantic.DeepEqual(vm, before) {
			t.Fatalf("errors %v; the same twice: %v; input unchanged: %v", errs, equality.Semantic.DeepEqual(once, twin), equality.Semantic.DeepEqual(vm, before))
		}
		again, errs := Expand(once, Choice{Preference: p}, cfg())
		if len(errs) > 0 || !equality.Semantic.DeepEqual(once, again) {
			t.Fatalf("expanded again: %v\ngot  %+v\nwant %+v", errs, again, once)
		}
	})
}
