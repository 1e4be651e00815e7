package paths_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/paths"
)

func TestOfVM(t *testing.T) {
	for text, want := range map[string]string{
		"": "",
		`spec.volumes[0].containerDisk.path: Invalid value: "/x": there is none`:    `spec.template.spec.volumes[0].containerDisk.path: Invalid value: "/x": there is none`,
		"starting it: spec.domain.cpu.cores: Invalid value: 0; spec.networks[1]: x": "starting it: spec.template.spec.domain.cpu.cores: Invalid value: 0; spec.template.spec.networks[1]: x",
		"[spec.domain.memory: Required value, spec.volumes: Required value]":        "[spec.template.spec.domain.memory: Required value, spec.template.spec.volumes: Required value]",
		"must be the name of a volume in spec.volumes":                              "must be the name of a volume in spec.template.spec.volumes",
		"metadata.annotations[hooks.kubevirt.io/hookSidecars]: needs a gate":        "spec.template.metadata.annotations[hooks.kubevirt.io/hookSidecars]: needs a gate",
		"metadata.name: Invalid value":                                              "metadata.name: Invalid value",
		"spec.template.spec.volumes[0].name: x, spec.runStrategy: y":                "spec.template.spec.volumes[0].name: x, spec.runStrategy: y",
		"spec.dataVolumeTemplates: not supported yet":                               "spec.dataVolumeTemplates: not supported yet",
		"spec.volumesnapshot and spec.domains are no fields":                        "spec.volumesnapshot and spec.domains are no fields",
		`Pod "virt-launcher-web" is invalid: spec.volumes[3].name: Required value`:  `Pod "virt-launcher-web" is invalid: spec.volumes[3].name: Required value`,
		"the claim's spec.resources.requests":                                       "the claim's spec.resources.requests",
		"image localhost/spec.domain:dev":                                           "image localhost/spec.domain:dev",
	} {
		if got := paths.OfVM(text); got != want {
			t.Errorf("%q\n got %q\nwant %q", text, got, want)
		}
		if got := paths.OfVM(want); got != want {
			t.Errorf("said again, %q became %q", want, got)
		}
	}
}

// A field that both had at the same place could not be told apart.
func TestNoFieldIsOfBoth(t *testing.T) {
	own := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1.VirtualMachineSpec]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		own[name] = true
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[v1.VirtualMachineInstanceSpec]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); own[name] {
			t.Errorf("spec.%s is a field of VMs and of VMIs", name)
		}
	}
}

func TestAnErrorStaysWhatItIs(t *testing.T) {
	cause := errors.New("spec.domain: Required value")
	if err := (paths.Error{Err: cause}); !errors.Is(err, cause) || err.Error() != "spec.template.spec.domain: Required value" {
		t.Errorf("got %v", err)
	}
}
