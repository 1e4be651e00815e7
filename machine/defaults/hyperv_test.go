package defaults_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
)

func TestWhatEnlightenmentsNeed(t *testing.T) {
	const yes, no = "{enabled: true}", "{enabled: false}"
	for given, want := range map[string]string{
		"{relaxed: {}}":                       "{relaxed: {}}",
		"{synictimer: {direct: " + yes + "}}": "{synictimer: {direct: " + yes + "}, synic: " + yes + ", vpindex: " + yes + "}",
		"{synic: {}}":                         "{synic: {}, vpindex: " + yes + "}",
		"{ipi: {}, vpindex: {}}":              "{ipi: {}, vpindex: {}}",
		"{tlbflush: {}}":                      "{tlbflush: {}, vpindex: " + yes + "}",
		"{tlbflush: " + no + "}":              "{tlbflush: " + no + "}",
		"{tlbflush: {}, vpindex: " + no + "}": "{tlbflush: {}, vpindex: " + no + "}", // which admission refuses
		"{evmcs: {}}":                         "{evmcs: {}, vapic: " + yes + "}",
	} {
		vmi, wanted := &v1.VirtualMachineInstance{}, &v1.FeatureHyperv{}
		vmi.Spec.Domain.Features = &v1.Features{Hyperv: &v1.FeatureHyperv{}}
		if err := errors.Join(yaml.UnmarshalStrict([]byte(given), vmi.Spec.Domain.Features.Hyperv), yaml.UnmarshalStrict([]byte(want), wanted)); err != nil {
			t.Fatal(err)
		}
		got := defaults.Instance(vmi, config.From(nil))
		if diff := cmp.Diff(wanted, got.Spec.Domain.Features.Hyperv); diff != "" {
			t.Errorf("%s (-want +got):\n%s", given, diff)
		}
		if again := defaults.Instance(got, config.From(nil)); !cmp.Equal(got, again) {
			t.Errorf("%s: filled twice:\n%s", given, cmp.Diff(got, again))
		}
		features := got.Spec.Domain.CPU.Features
		if evmcs := wanted.EVMCS != nil; evmcs != (len(features) == 1 && features[0] == v1.CPUFeature{Name: "vmx", Policy: "require"}) {
			t.Errorf("%s: CPU features %v", given, features)
		}
	}
}
