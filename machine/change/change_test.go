package change_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/change"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func amd64() config.Config {
	cfg := config.From(nil)
	cfg.Architecture = "amd64"
	return cfg
}

// side returns the VM that a text describes, and what it makes; no text is no VM.
func side(t interface{ Fatal(...any) }, text string) change.Side {
	if strings.TrimSpace(text) == "" {
		return change.Side{}
	}
	vm := &v1.VirtualMachine{}
	if err := yaml.UnmarshalStrict([]byte(text), vm); err != nil {
		t.Fatal(err)
	}
	return change.Side{VM: vm, VMI: defaults.VMI(vm, amd64())}
}

func seen(is, want change.Side) change.Seen {
	return change.Seen{Is: is, Want: want, Runs: is.VM != nil && change.MayRun(is.VM)}
}

// Each file holds a VM before and after, with === between; the golden is the decision, there and back.
func TestDecisions(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.yaml")
	if len(files) == 0 {
		t.Fatal("no testdata")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			before, after, ok := strings.Cut(string(raw), "===\n")
			if !ok {
				t.Fatal("no ===")
			}
			is, want := side(t, before), side(t, after)
			text, err := yaml.Marshal(map[string]change.Decision{"there": change.VM(seen(is, want)), "back": change.VM(seen(want, is))})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", text)
		})
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// draw returns a VM made of parts whose named lists are in any order.
func draw(t *rapid.T, name string) *v1.VirtualMachine {
	vm := &v1.VirtualMachine{}
	vm.Namespace, vm.Name = "team", "web"
	s := rapid.SampledFrom([]v1.VirtualMachineRunStrategy{v1.RunStrategyAlways, v1.RunStrategyHalted, v1.RunStrategyManual, v1.RunStrategyRerunOnFailure, v1.RunStrategyOnce}).Draw(t, name+" strategy")
	vm.Spec.RunStrategy = &s
	vm.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{}
	spec := &vm.Spec.Template.Spec
	for _, v := range rapid.Permutation([]string{"a", "b", "c"}).Draw(t, name+" order")[:rapid.IntRange(0, 3).Draw(t, name+" volumes")] {
		image := rapid.SampledFrom([]string{"x:1", "x:2"}).Draw(t, name+" image")
		spec.Volumes = append(spec.Volumes, v1.Volume{Name: v, VolumeSource: v1.VolumeSource{ContainerDisk: &v1.ContainerDiskSource{Image: image}}})
	}
	if rapid.Bool().Draw(t, name+" labelled") {
		vm.Spec.Template.ObjectMeta.Labels = map[string]string{"color": rapid.SampledFrom([]string{"red", "blue"}).Draw(t, name+" color")}
	}
	if rapid.Bool().Draw(t, name+" cores") {
		spec.Domain.CPU = &v1.CPU{Cores: 2}
	}
	return vm
}

func whole(vm *v1.VirtualMachine) change.Side {
	return change.Side{VM: vm, VMI: defaults.VMI(vm, amd64())}
}

func TestNothingIsAChangeOfItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t, "a")
		b := a.DeepCopy()
		slices.Reverse(b.Spec.Template.Spec.Volumes)
		if d := change.VM(seen(whole(a), whole(b))); d.Class != change.None || len(d.Fields) != 0 {
			t.Fatalf("got %+v", d)
		}
	})
}

func TestADecisionIsTheSameTwiceAndChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		is, want := whole(draw(t, "is")), whole(draw(t, "want"))
		before, _ := json.Marshal([]any{is, want})
		first, second := change.VM(seen(is, want)), change.VM(seen(is, want))
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("decided twice:\n%s", diff)
		}
		if after, _ := json.Marshal([]any{is, want}); string(before) != string(after) {
			t.Fatal("what was seen was changed")
		}
		worst := change.None
		for _, f := range first.Fields {
			worst = change.Worst(worst, f.Class)
		}
		if first.Class != worst {
			t.Fatalf("class %s, but the worst field is %s: %+v", first.Class, worst, first.Fields)
		}
	})
}

func TestClassesThatDisturb(t *testing.T) {
	var got []change.Class
	for _, c := range change.Classes() {
		if c.Disruptive() {
			got = append(got, c)
		}
	}
	if want := []change.Class{change.Restart, change.Stop, change.Replace, change.Delete}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestClaimsOfAVM(t *testing.T) {
	vm := side(t, `{spec: {template: {spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: two}}, {name: b, dataVolume: {name: one}}, {name: c, emptyDisk: {capacity: 1Gi}}]}}}}`).VM
	if got := change.Claims(vm); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("got %v", got)
	}
}
