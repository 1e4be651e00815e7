package instancetype

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
)

// Found is what came of the names of a VM's instancetype and preference.
type Found struct {
	Choice Choice
	// Used is what they are; the VMI's annotations say so.
	Used []Reference
	// Instancetype and Preference are recorded in the VM's status.
	Instancetype, Preference *v1.InstancetypeStatusRef
	// Store is the revisions that aren't stored yet.
	Store []*appsv1.ControllerRevision
	// Missing says what isn't there; nil: nothing.
	Missing *Missing
}

// Missing is an instancetype or preference that can't be had yet.
type Missing struct {
	Preference bool
	Message    string
	// Infer: it is a volume's to say, which nothing watches.
	Infer bool
}

// Record notes the reference that the VM's status keeps for a matcher.
func (f *Found) Record(m Matcher, ref *v1.InstancetypeStatusRef) {
	if m.Preference {
		f.Preference = ref
		return
	}
	f.Instancetype = ref
}

// Use notes that the object ref names is what the matcher means.
func (f *Found) Use(m Matcher, ref *v1.InstancetypeStatusRef) {
	f.Record(m, ref)
	f.Used = append(f.Used, Reference{Kind: ref.Kind, Name: ref.Name})
	f.Choice.ClearMemory = f.Choice.ClearMemory || !m.Preference && m.InferFromVolume != "" && m.Ignores()
}

// Whole returns vm expanded by the choice and with every default in its template: a VM that means the same machine on
// its own, in full. Its status no longer refers to what it was expanded by. The errors are Expand's.
func Whole(vm *v1.VirtualMachine, c Choice, cfg config.Config) (*v1.VirtualMachine, field.ErrorList) {
	out, errs := Expand(vm, c, cfg)
	if len(errs) > 0 {
		return nil, errs
	}
	out.Status.InstancetypeRef, out.Status.PreferenceRef = nil, nil
	if out.Spec.Template != nil {
		asked := out.Status.StateChangeRequests
		out.Status.StateChangeRequests = nil // a start that was asked for is no part of the machine
		out.Spec.Template.Spec = defaults.VMI(out, cfg).Spec
		out.Status.StateChangeRequests = asked
	}
	return out, nil
}
