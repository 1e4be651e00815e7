package change_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/change"
)

func spec(t *testing.T, text string) *v1.VirtualMachineInstanceSpec {
	t.Helper()
	s := &v1.VirtualMachineInstanceSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFieldsAreNamed(t *testing.T) {
	const devices = "spec.template.spec.domain.devices"
	for name, tc := range map[string]struct {
		is, want string
		paths    []string
	}{
		"nothing":              {`{domain: {memory: {guest: 1Gi}}}`, `{domain: {memory: {guest: 1024Mi}}}`, nil},
		"what has come":        {`{domain: {devices: {}}}`, `{domain: {devices: {rng: {}}}}`, []string{devices + ".rng"}},
		"what has gone":        {`{domain: {devices: {rng: {}}}}`, `{domain: {devices: {}}}`, []string{devices + ".rng"}},
		"a quantity":           {`{domain: {memory: {guest: 1Gi}}}`, `{domain: {memory: {guest: 2Gi}}}`, []string{"spec.template.spec.domain.memory.guest"}},
		"a number beneath":     {`{domain: {cpu: {cores: 1}}}`, `{domain: {cpu: {cores: 2, model: host-model}}}`, []string{"spec.template.spec.domain.cpu.cores", "spec.template.spec.domain.cpu.model"}},
		"an inlined choice":    {`{volumes: [{name: r, containerDisk: {image: a}}]}`, `{volumes: [{name: r, containerDisk: {image: b}}]}`, []string{"spec.template.spec.volumes[r].containerDisk.image"}},
		"another choice":       {`{volumes: [{name: r, containerDisk: {image: a}}]}`, `{volumes: [{name: r, emptyDisk: {capacity: 1Gi}}]}`, []string{"spec.template.spec.volumes[r].containerDisk", "spec.template.spec.volumes[r].emptyDisk"}},
		"entries by name":      {`{networks: [{name: a, pod: {}}, {name: b}]}`, `{networks: [{name: c}, {name: a, pod: {}}]}`, []string{"spec.template.spec.networks[c]", "spec.template.spec.networks[b]"}},
		"another order":        {`{networks: [{name: a}, {name: b}]}`, `{networks: [{name: b}, {name: a}]}`, nil},
		"order and more":       {`{networks: [{name: a}, {name: b}]}`, `{networks: [{name: b}, {name: a, pod: {}}]}`, []string{"spec.template.spec.networks[a].pod"}},
		"names that say less":  {`{domain: {devices: {inputs: [{type: tablet}, {type: keyboard}]}}}`, `{domain: {devices: {inputs: [{type: tablet}, {type: tablet}]}}}`, []string{devices + ".inputs"}},
		"order without names":  {`{tolerations: [{key: a}, {key: b}]}`, `{tolerations: [{key: b}, {key: a}]}`, []string{"spec.template.spec.tolerations"}},
		"a map":                {`{nodeSelector: {a: b}}`, `{nodeSelector: {a: c}}`, []string{"spec.template.spec.nodeSelector"}},
		"how it starts":        {`{startStrategy: Paused}`, `{}`, nil},
		"an empty list is nil": {`{volumes: []}`, `{}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := change.Fields(spec(t, tc.is), spec(t, tc.want)); !slices.Equal(got, tc.paths) {
				t.Errorf("got %q, want %q", got, tc.paths)
			}
		})
	}
}

// A change and its revert name the same fields, and nothing is a change of itself.
func TestARevertNamesTheSame(t *testing.T) {
	texts := rapid.SampledFrom([]string{
		`{}`, `{domain: {devices: {rng: {}}}}`, `{domain: {cpu: {cores: 2}, memory: {guest: 1Gi}}}`, `{hostname: a, nodeSelector: {a: b}}`,
		`{volumes: [{name: r, containerDisk: {image: a}}, {name: s}]}`, `{volumes: [{name: s}], networks: [{name: net, pod: {}}]}`,
	})
	rapid.Check(t, func(rt *rapid.T) {
		a, b := spec(t, texts.Draw(rt, "is")), spec(t, texts.Draw(rt, "want"))
		there, back := change.Fields(a, b), change.Fields(b, a)
		slices.Sort(there)
		slices.Sort(back)
		if !slices.Equal(there, back) || len(change.Fields(a, a.DeepCopy())) != 0 {
			rt.Fatalf("there %q, back %q", there, back)
		}
	})
}
