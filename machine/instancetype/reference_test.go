package instancetype

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"kubevirt.io/api/instancetype/v1beta1"
)

func TestKindsAsPeopleWriteThem(t *testing.T) {
	for kind, want := range map[string]Reference{
		"":                                  {Kind: ClusterInstancetype, Name: "small"},
		"virtualMachineInstancetypes":       {Kind: Instancetype, Namespace: "ns", Name: "small"},
		"VirtualMachineInstancetype":        {Kind: Instancetype, Namespace: "ns", Name: "small"},
		"VIRTUALMACHINEclusterInstancetype": {Kind: ClusterInstancetype, Name: "small"},
	} {
		if got, ok := (Matcher{Kind: kind, Name: "small"}).Reference("ns"); got != want || !ok {
			t.Errorf("%q: got %v, want %v", kind, got, want)
		}
	}
	if got, ok := (Matcher{Kind: "VirtualMachinePreference", Name: "small"}).Reference("ns"); ok {
		t.Errorf("a preference passes for instancetype %v", got)
	}
}

func TestMatchersAreChecked(t *testing.T) {
	policy := v1.InferFromVolumeFailurePolicy("Maybe")
	vm := machine(nil)
	vm.Spec.Instancetype = &v1.InstancetypeMatcher{Name: "small", Kind: "VirtualMachineInstance", InferFromVolume: "root"}
	vm.Spec.Preference = &v1.PreferenceMatcher{InferFromVolumeFailurePolicy: &policy}
	want := []string{"spec.instancetype.name", "spec.instancetype.kind", "spec.instancetype.kind",
		"spec.preference.name", "spec.preference.inferFromVolumeFailurePolicy"}
	if got := fields(CheckMatchers(vm)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestARevisionIsKeptUntilTheMatcherNamesSomethingElse(t *testing.T) {
	m := Matcher{Kind: "virtualmachineinstancetype", Name: "small"}
	r, _ := m.Reference("ns")
	ref := m.Ref(r, "kept")
	if !m.Kept(ref) {
		t.Error("what was recorded for a matcher isn't kept for it")
	}
	for name, other := range map[string]Matcher{
		"name":   {Kind: m.Kind, Name: "big"},
		"kind":   {Name: "small"},
		"volume": {InferFromVolume: "root"},
	} {
		if other.Kept(ref) {
			t.Errorf("another %s keeps the revision", name)
		}
	}
}

func TestRevisionsAreReadAsTheyWereStored(t *testing.T) {
	object := &v1beta1.VirtualMachineClusterInstancetype{
		ObjectMeta: metav1.ObjectMeta{Name: "small", UID: "uid", Generation: 3}, Spec: *small(2, "1Gi"),
	}
	revision, err := Stored(machine(nil), ClusterInstancetype, object)
	if err != nil {
		t.Fatal(err)
	}
	if want := "web-small-v1beta1-uid-3"; revision.Name != want {
		t.Errorf("got name %s, want %s", revision.Name, want)
	}
	var c Choice
	if err := (Matcher{}).Read(&c, revision); err != nil || c.Instancetype.CPU.Guest != 2 {
		t.Errorf("got %+v, %v", c.Instancetype, err)
	}
	if err := (Matcher{Preference: true}).Read(&c, revision); err == nil {
		t.Error("an instancetype is read as a preference")
	}
	object.Name = strings.Repeat("a", 253)
	if revision, err = Stored(machine(nil), ClusterInstancetype, object); err != nil || len(revision.Name) > 253 {
		t.Errorf("a long name gives %q, %v", revision.Name, err)
	}
}

func TestInference(t *testing.T) {
	m := Matcher{InferFromVolume: "root"}
	got, err := m.Infer(map[string]string{"instancetype.kubevirt.io/default-instancetype": "small"})
	if err != nil || got.Name != "small" {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := m.Infer(nil); !errors.Is(err, ErrNotInferred) {
		t.Errorf("got %v, want ErrNotInferred", err)
	}
}
