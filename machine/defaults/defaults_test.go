package defaults_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func amd64() config.Config {
	cfg := config.From(nil)
	cfg.Architecture = "amd64"
	return cfg
}

func read(t *testing.T, path string) *v1.VirtualMachine {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	vm := &v1.VirtualMachine{}
	if err := yaml.UnmarshalStrict(raw, vm); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return vm
}

func TestTheVMIThatAVMMakes(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.yaml")
	if len(files) == 0 {
		t.Fatal("no testdata")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			vm := read(t, file)
			before := vm.DeepCopy()
			got := defaults.VMI(vm, amd64())
			if diff := cmp.Diff(before, vm); diff != "" {
				t.Errorf("the VM was changed (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(got, defaults.Instance(got, amd64())); diff != "" {
				t.Errorf("filled twice (-once +twice):\n%s", diff)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", got)
		})
	}
}

func golden(t *testing.T, path string, got any) {
	t.Helper()
	raw, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(raw)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestAddressesAreUnicastLocalAndNeverReserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z]{1,20}`)
		mac := defaults.MAC(name.Draw(t, "namespace"), name.Draw(t, "name"), name.Draw(t, "iface"))
		if len(mac) != 17 || !strings.ContainsRune("26ae", rune(mac[1])) || mac == "02:00:00:00:00:00" {
			t.Fatalf("got %s", mac)
		}
	})
}

func TestNamesakesInTwoNamespacesAreTwoMachines(t *testing.T) {
	if a, b := defaults.FirmwareUUID("a", "web"), defaults.FirmwareUUID("b", "web"); a == b {
		t.Errorf("both are %s", a)
	}
	if a, b := defaults.Serial("a", "web"), defaults.FirmwareUUID("a", "web"); a == b {
		t.Errorf("serial and UUID are both %s", a)
	}
}

func TestRequestToStartPaused(t *testing.T) {
	vm := read(t, "testdata/loose-volume.yaml")
	vm.Status.StateChangeRequests = []v1.VirtualMachineStateChangeRequest{{
		Action: v1.StartRequest, Data: map[string]string{v1.StartRequestDataPausedKey: v1.StartRequestDataPausedTrue},
	}}
	if !defaults.VMI(vm, amd64()).ShouldStartPaused() {
		t.Error("the VMI doesn't start paused")
	}
}

func TestAWatchdogIsThatOfItsMachine(t *testing.T) {
	vmi := &v1.VirtualMachineInstance{}
	vmi.Spec.Domain.Devices.Watchdog = &v1.Watchdog{Name: "dog"}
	got := defaults.Instance(vmi, amd64()).Spec.Domain.Devices.Watchdog
	if got.I6300ESB == nil || got.I6300ESB.Action != v1.WatchdogActionReset || got.Diag288 != nil {
		t.Errorf("got %+v", got.WatchdogDevice)
	}
	vmi.Spec.Architecture = "s390x"
	if got := defaults.Instance(vmi, amd64()).Spec.Domain.Devices.Watchdog; got.Diag288 == nil || got.I6300ESB != nil {
		t.Errorf("on s390x: got %+v", got.WatchdogDevice)
	}
}

func TestAnEvenNumberOfCPUsIsRecorded(t *testing.T) {
	vm := &v1.VirtualMachine{}
	vm.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{}
	cfg := config.From(nil)
	for _, isolated := range []bool{true, false} {
		for _, align := range []bool{true, false} {
			vm.Spec.Template.Spec.Domain.CPU = &v1.CPU{IsolateEmulatorThread: isolated}
			cfg.AlignCPUs = align
			if _, got := defaults.VMI(vm, cfg).Annotations[v1.EmulatorThreadCompleteToEvenParity]; got != (isolated && align) {
				t.Errorf("isolated %v, aligned %v: annotated %v", isolated, align, got)
			}
		}
	}
}
