package instancetype

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	api "kubevirt.io/api/instancetype"
)

// Kinds that a matcher may name.
const (
	Instancetype        = "VirtualMachineInstancetype"
	ClusterInstancetype = "VirtualMachineClusterInstancetype"
	Preference          = "VirtualMachinePreference"
	ClusterPreference   = "VirtualMachineClusterPreference"
)

// Matcher is a VM's spec.instancetype or spec.preference.
type Matcher struct {
	Kind, Name, RevisionName string
	InferFromVolume          string
	Policy                   *v1.InferFromVolumeFailurePolicy
	// Preference tells which of the two it is.
	Preference bool
}

// Matchers returns what the VM's spec names; empty ones are left out.
func Matchers(vm *v1.VirtualMachine) []Matcher {
	var out []Matcher
	if m := vm.Spec.Instancetype; m != nil {
		out = append(out, Matcher{m.Kind, m.Name, m.RevisionName, m.InferFromVolume, m.InferFromVolumeFailurePolicy, false})
	}
	if m := vm.Spec.Preference; m != nil {
		out = append(out, Matcher{m.Kind, m.Name, m.RevisionName, m.InferFromVolume, m.InferFromVolumeFailurePolicy, true})
	}
	return out
}

// Field returns where the matcher is in a VM: spec.instancetype or spec.preference.
func (m Matcher) Field() *field.Path {
	if m.Preference {
		return field.NewPath("spec", "preference")
	}
	return instancetypePath
}

// Ignores tells whether a volume that says nothing leaves the VM as if it had no matcher.
func (m Matcher) Ignores() bool {
	return m.Policy != nil && *m.Policy == v1.IgnoreInferFromVolumeFailure
}

// Reference returns what the matcher names for a VM of the namespace; false where it names no kind that exists.
func (m Matcher) Reference(namespace string) (Reference, bool) {
	one, all := Instancetype, ClusterInstancetype
	words := [2][]string{{api.SingularResourceName, api.PluralResourceName}, {api.ClusterSingularResourceName, api.ClusterPluralResourceName}}
	if m.Preference {
		one, all = Preference, ClusterPreference
		words = [2][]string{{api.SingularPreferenceResourceName, api.PluralPreferenceResourceName},
			{api.ClusterSingularPreferenceResourceName, api.ClusterPluralPreferenceResourceName}}
	}
	kind := strings.ToLower(m.Kind)
	switch {
	case kind == "" || slices.Contains(words[1], kind):
		return Reference{Kind: all, Name: m.Name}, true
	case slices.Contains(words[0], kind):
		return Reference{Kind: one, Namespace: namespace, Name: m.Name}, true
	}
	return Reference{}, false
}

// Reference is one instancetype or preference. Namespace is empty for the kinds of the cluster.
type Reference struct{ Kind, Namespace, Name string }

func (r Reference) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// CheckMatchers returns what is wrong with how a VM names its instancetype and preference. It asks for no object: one
// that isn't there yet may come.
func CheckMatchers(vm *v1.VirtualMachine) field.ErrorList {
	var errs field.ErrorList
	for _, m := range Matchers(vm) {
		errs = append(errs, m.check()...)
	}
	return errs
}

func (m Matcher) check() field.ErrorList {
	var errs field.ErrorList
	path := m.Field()
	if m.Name == "" && m.InferFromVolume == "" {
		errs = append(errs, &field.Error{Type: field.ErrorTypeNotFound, Field: path.Child("name").String(), BadValue: "",
			Detail: "must name one, or inferFromVolume the volume that does"})
	}
	if m.InferFromVolume != "" && m.Name != "" {
		errs = append(errs, excluded(path.Child("name"), m.Name))
	}
	if m.InferFromVolume != "" && m.Kind != "" {
		errs = append(errs, excluded(path.Child("kind"), m.Kind))
	}
	if _, ok := m.Reference(""); !ok {
		kinds := []string{Instancetype, ClusterInstancetype}
		if m.Preference {
			kinds = []string{Preference, ClusterPreference}
		}
		errs = append(errs, field.NotSupported(path.Child("kind"), m.Kind, kinds))
	}
	policies := []v1.InferFromVolumeFailurePolicy{v1.RejectInferFromVolumeFailure, v1.IgnoreInferFromVolumeFailure}
	if m.Policy != nil && !slices.Contains(policies, *m.Policy) {
		errs = append(errs, field.NotSupported(path.Child("inferFromVolumeFailurePolicy"), *m.Policy, policies))
	}
	return errs
}

func excluded(at *field.Path, value string) *field.Error {
	return &field.Error{Type: field.ErrorTypeNotSupported, Field: at.String(), BadValue: value, Detail: "must be left out where inferFromVolume is given"}
}

// Kept tells whether what was recorded for a matcher in the VM's status still stands: until the matcher names something
// else. A change of the instancetype itself, or its deletion, changes no VM.
func (m Matcher) Kept(ref *v1.InstancetypeStatusRef) bool {
	if ref == nil || ref.InferFromVolume != m.InferFromVolume {
		return false
	}
	if m.InferFromVolume != "" {
		return ref.ControllerRevisionRef != nil || ref.Name == "" && m.Ignores()
	}
	want, ok := m.Reference("")
	return ok && ref.ControllerRevisionRef != nil && ref.Name == want.Name && ref.Kind == want.Kind
}

// Ref returns what is recorded for the matcher once revision of r is its own.
func (m Matcher) Ref(r Reference, revision string) *v1.InstancetypeStatusRef {
	return &v1.InstancetypeStatusRef{
		Name: r.Name, Kind: r.Kind, InferFromVolume: m.InferFromVolume, InferFromVolumeFailurePolicy: m.Policy,
		ControllerRevisionRef: &v1.ControllerRevisionRef{Name: revision},
	}
}

// Infer returns the matcher with the name and kind that a volume's labels give it. An error tells which label is
// missing; it is ErrNotInferred.
func (m Matcher) Infer(labels map[string]string) (Matcher, error) {
	name, kind := api.DefaultInstancetypeLabel, api.DefaultInstancetypeKindLabel
	if m.Preference {
		name, kind = api.DefaultPreferenceLabel, api.DefaultPreferenceKindLabel
	}
	m.Name, m.Kind = labels[name], labels[kind]
	if m.Name == "" {
		return m, fmt.Errorf("%w: no label %s", ErrNotInferred, name)
	}
	if _, ok := m.Reference(""); !ok {
		return m, fmt.Errorf("label %s: %q is no kind of instancetype or preference", kind, m.Kind)
	}
	return m, nil
}
