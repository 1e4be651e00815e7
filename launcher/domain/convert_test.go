package domain_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/domain"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// input is one golden case: a VMI, and the facts it is converted with.
type input struct {
	VMI   *v1.VirtualMachineInstance
	Facts domain.Facts
}

func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			in := read(t, file)
			before := in.VMI.DeepCopy()
			got := convert(t, in)
			if diff := cmp.Diff(before, in.VMI); diff != "" {
				t.Errorf("the VMI was changed:\n%s", diff)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden.xml"
			if *update {
				write(t, golden, got)
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("domain differs from %s (-want +got), see -update:\n%s", golden, diff)
			}
		})
	}
}

func read(t *testing.T, file string) input {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in input
	if err := yaml.UnmarshalStrict(b, &in); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	return in
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func convert(t *testing.T, in input) string {
	t.Helper()
	d, err := domain.Convert(in.VMI, in.Facts)
	if err != nil {
		return "refused:\n" + strings.ReplaceAll(strings.Trim(err.Error(), "[]"), ", spec.", "\nspec.") + "\n"
	}
	x, err := d.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return x + "\n"
}

// Every legal spelling of an amount. Source: kubevirt/kubevirt#1100.
func TestMemoryIsTheAmountInEveryUnit(t *testing.T) {
	for amount, want := range map[string]uint{
		"1M": 1000000, "64Mi": 67108864, "1.5Gi": 1610612736, "1000M": 1000000000, "1e9": 1000000000,
		"134217728": 134217728, "128974848e0": 128974848,
	} {
		for _, in := range []input{withGuest(t, amount), withRequest(t, amount, "4Gi")} {
			d, err := domain.Convert(in.VMI, in.Facts)
			if err != nil {
				t.Fatalf("%s: %v", amount, err)
			}
			if d.Memory.Value != want || d.Memory.Unit != "b" {
				t.Errorf("%s: got %d %s, want %d b", amount, d.Memory.Value, d.Memory.Unit, want)
			}
		}
	}
}

func TestMemoryThatIsASlipIsRefused(t *testing.T) {
	for _, amount := range []string{"2048", "512m", "0", "-1Gi"} {
		in := withGuest(t, amount)
		_, err := domain.Convert(in.VMI, in.Facts)
		if err == nil || !strings.HasPrefix(err.Error(), "spec.domain.memory.guest: ") {
			t.Errorf("%s: got %v, want an error at spec.domain.memory.guest", amount, err)
		}
	}
}

func TestVCPUsBeyondQEMUAreRefused(t *testing.T) {
	for _, spec := range []string{
		"cpu: {sockets: 2147483648, cores: 2147483648, threads: 4}", // 2^64, which is 0 to those who don't look
		"cpu: {sockets: 1, maxSockets: 4294967295, cores: 4294967295, threads: 4294967295}",
		"cpu: {cores: 4097}",
		"resources: {limits: {cpu: 4294967297}}",
	} {
		in := parse(t, "{vmi: {spec: {domain: {devices: {}, memory: {guest: 64Mi}, "+spec+"}}}}")
		_, err := domain.Convert(in.VMI, in.Facts)
		if err == nil || !strings.HasPrefix(err.Error(), "spec.domain.cpu: ") {
			t.Errorf("%s: got %v, want an error at spec.domain.cpu", spec, err)
		}
	}
}

// Every spelling of a MAC address. Source: kubevirt/kubevirt#1213.
func TestMACSpellings(t *testing.T) {
	const want = "02:00:5e:00:53:0a"
	for mac, ok := range map[string]bool{
		"02:00:5e:00:53:0a": true, "02:00:5E:00:53:0A": true, "02-00-5e-00-53-0a": true, "0200.5e00.530a": true,
		"02:00:5e:00:53": false, "02:00:5e:00:53:0a:0b:0c": false, "02:00:5e:00:53:0g": false,
		"01:00:5e:00:53:0a": false, "00:00:00:00:00:00": false, "": false,
	} {
		in := withGuest(t, "128Mi")
		in.VMI.Spec.Domain.Devices.Interfaces = []v1.Interface{{Name: "net", MacAddress: mac}}
		in.Facts.Interfaces = map[string]domain.Interface{"net": {Tap: "tap0"}}
		d, err := domain.Convert(in.VMI, in.Facts)
		switch {
		case ok && err != nil:
			t.Errorf("%s: %v", mac, err)
		case ok && d.Devices.Interfaces[0].MAC.Address != want:
			t.Errorf("%s: got %s, want %s", mac, d.Devices.Interfaces[0].MAC.Address, want)
		case !ok && (err == nil || !strings.HasPrefix(err.Error(), "spec.domain.devices.interfaces[0].macAddress: ")):
			t.Errorf("%s: got %v, want an error at its field", mac, err)
		}
	}
}

// Gaps between boot orders are legal, and an interface may come before a disk. Source: kubevirt/kubevirt#1411.
func TestBootOrderIsTheSpecs(t *testing.T) {
	in := parse(t, `{vmi: {spec: {domain: {memory: {guest: 128Mi}, devices: {
		disks: [{name: root, bootOrder: 7, disk: {bus: virtio}}], interfaces: [{name: net, bootOrder: 3, masquerade: {}}]}},
		volumes: [{name: root, containerDisk: {image: i}}]}}}`)
	in.Facts.Sources = map[string]domain.Source{"root": {Path: "/run/root.qcow2", Format: domain.QCOW2}}
	in.Facts.Interfaces = map[string]domain.Interface{"net": {Tap: "tap0", MAC: "02:00:5e:00:53:0a"}}
	d, err := domain.Convert(in.VMI, in.Facts)
	if err != nil {
		t.Fatal(err)
	}
	if disk, nic := d.Devices.Disks[0].Boot.Order, d.Devices.Interfaces[0].Boot.Order; disk != 7 || nic != 3 {
		t.Errorf("the disk has order %d, the interface %d; want 7 and 3", disk, nic)
	}
}

func TestDiskTargetsByName(t *testing.T) {
	d, err := domain.Convert(read(t, "testdata/disks.yaml").VMI, read(t, "testdata/disks.yaml").Facts)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"root": "vda", "data": "vdc", "kept": "vdb", "iso": "sda", "drive": "sdb", "raid": "sdc"}
	if diff := cmp.Diff(want, domain.DiskTargets(d)); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

func withGuest(t *testing.T, amount string) input {
	t.Helper()
	return parse(t, "{vmi: {spec: {domain: {devices: {}, memory: {guest: \""+amount+"\"}}}}}")
}

func withRequest(t *testing.T, amount, limit string) input {
	t.Helper()
	return parse(t, "{vmi: {spec: {domain: {devices: {}, resources: {requests: {memory: \""+amount+"\"}, limits: {memory: "+limit+"}}}}}}")
}

func parse(t *testing.T, text string) input {
	t.Helper()
	var in input
	if err := yaml.UnmarshalStrict([]byte(text), &in); err != nil {
		t.Fatal(err)
	}
	return in
}
