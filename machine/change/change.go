// Package change decides what a change of a VM does to its guest and to its data: nothing, a change of the running guest, a
// migration, a restart, its end. The VM controller and `virtctl plan` ask the same functions.
package change

import (
	"maps"
	"slices"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/mirror"
	"virtstack.io/virtstack/machine/names"
)

// Class is what a change does.
type Class string

// The classes, from the one that disturbs least.
const (
	None    Class = "none"    // to a guest
	Create  Class = "create"  // of a VM that doesn't run
	Start   Class = "start"   // of a guest
	Hot     Class = "hot"     // change of the running guest
	Migrate Class = "migrate" // to another node, without a restart
	Restart Class = "restart" // by somebody, for the change to reach the guest
	Stop    Class = "stop"    // of the guest
	Replace Class = "replace" // of the VM by another one
	Delete  Class = "delete"  // of the VM
)

var classes = []Class{None, Create, Start, Hot, Migrate, Restart, Stop, Replace, Delete}

// Classes returns all classes, from the one that disturbs least.
func Classes() []Class { return slices.Clone(classes) }

// Disruptive tells whether a guest ends by it, or has to for the change to reach it.
func (c Class) Disruptive() bool { return slices.Index(classes, c) >= slices.Index(classes, Restart) }

// Worst returns the class that disturbs most; None of none.
func Worst(of ...Class) Class {
	worst := 0
	for _, c := range of {
		worst = max(worst, slices.Index(classes, c))
	}
	return classes[worst]
}

// Field is one field that differs.
type Field struct {
	// Path is from the VM's root; an entry of a list has its name in brackets.
	Path  string `json:"path"`
	Class Class  `json:"class"`
	// Why says what the class comes from.
	Why string `json:"why,omitempty"`
}

// Paths returns the paths of the fields that are of a class.
func Paths(fields []Field, of Class) []string {
	var out []string
	for _, f := range fields {
		if f.Class == of {
			out = append(out, f.Path)
		}
	}
	return out
}

// Own are the keys of a VMI's labels and annotations that come from its VM: the others are somebody else's to drop.
type Own struct{ Labels, Annotations []string }

// Guest returns what differs between a VMI that runs and the one that its VM asks for now, and what each takes: template
// labels and annotations first, then the spec in its order. Nil: the guest is what is asked for.
func Guest(is, want *v1.VirtualMachineInstance, own Own) []Field {
	fields := metadata("spec.template.metadata.labels", mirror.Diff(is.Labels, want.Labels, own.Labels))
	fields = append(fields, metadata("spec.template.metadata.annotations", mirror.Diff(is.Annotations, want.Annotations, own.Annotations))...)
	for _, path := range Fields(&is.Spec, &want.Spec) {
		fields = append(fields, judged(path))
	}
	return fields
}

func metadata(path string, change mirror.Change) []Field {
	var fields []Field
	for _, key := range slices.Sorted(maps.Keys(change)) {
		if key != names.Defaults { // a record, not the template's
			fields = append(fields, judged(path+"["+key+"]"))
		}
	}
	return fields
}

// Side is a VM before or after a change. The zero value is no VM.
type Side struct {
	VM *v1.VirtualMachine
	// VMI is the one that runs, or else the one that the VM makes.
	VMI *v1.VirtualMachineInstance
	// Open: its instancetype or preference isn't known, so the VMI lacks what they give.
	Open bool
}

// Seen is what is known of a change of one VM.
type Seen struct {
	Is, Want Side
	// Runs: there is a guest, or may be.
	Runs bool
	// Own is for a VMI that runs; where there is none, all keys are the VM's.
	Own *Own
}

// Decision is what a change of one VM does.
type Decision struct {
	Class Class
	// Fields cause it, or are changed without effect.
	Fields []Field
	// Lost is the data that goes, Kept what stays without the guest; where the guest doesn't end both are empty.
	Lost, Kept []Data
}

// VM decides.
func VM(s Seen) Decision {
	switch {
	case s.Is.VM == nil && s.Want.VM == nil:
		return Decision{Class: None}
	case s.Is.VM == nil:
		return come(s)
	case s.Want.VM == nil:
		d := Decision{Class: Delete}
		d.Lost, d.Kept = onDelete(s.Is.VM)
		return d
	}
	fields := guest(s)
	d := Decision{Class: None, Fields: append(running(s, len(fields) > 0), fields...)}
	for _, f := range d.Fields {
		d.Class = Worst(d.Class, f.Class)
	}
	if s.Runs && d.Class.Disruptive() {
		d.Lost, d.Kept = OnRestart(s.Is.VM)
	}
	return d
}

func come(s Seen) Decision {
	if want := lifecycle.For(s.Want.VM, nil); want.VMI == lifecycle.Present {
		return Decision{Class: Start, Fields: []Field{{strategyPath(s.Want.VM), Start, want.Why}}}
	}
	return Decision{Class: Create}
}

// MayRun tells whether a VM of which only the spec is known can have a guest.
func MayRun(vm *v1.VirtualMachine) bool { return lifecycle.For(vm, nil).VMI != lifecycle.Absent }

// running returns what the run strategy does; changed: the machine is another one, too.
func running(s Seen, changed bool) []Field {
	var vmi *v1.VirtualMachineInstance
	if s.Runs {
		vmi = &v1.VirtualMachineInstance{Status: v1.VirtualMachineInstanceStatus{Phase: v1.Running}}
	}
	path := strategyPath(s.Want.VM)
	was, want := lifecycle.For(s.Is.VM, nil), lifecycle.For(s.Want.VM, vmi)
	same := lifecycle.Strategy(s.Is.VM) == lifecycle.Strategy(s.Want.VM)
	switch {
	case s.Runs && want.VMI == lifecycle.Absent:
		return []Field{{path, Stop, want.Why}}
	case !s.Runs && want.VMI == lifecycle.Present && (was.VMI != lifecycle.Present || changed):
		return []Field{{path, Start, want.Why}}
	case s.Runs && !same && want.VMI == lifecycle.Present && was.VMI == lifecycle.Keep:
		return []Field{{path, Start, want.Why + ", if it doesn't run"}}
	case !same:
		return []Field{{path, None, "the guest stays as it is"}}
	}
	return nil
}

func strategyPath(vm *v1.VirtualMachine) string {
	if vm.Spec.RunStrategy == nil && vm.Spec.Running != nil {
		return "spec.running"
	}
	return "spec.runStrategy"
}

const later = "at the next start"

// guest returns what differs in the machine, each with what it does now: nothing where no guest runs on.
func guest(s Seen) []Field {
	fields := claims(s)
	if s.Is.VMI != nil && s.Want.VMI != nil {
		fields = append(fields, Guest(s.Is.VMI, s.Want.VMI, own(s))...)
	}
	fields = append(matchers(s, len(Paths(fields, Restart)) > 0), fields...)
	if s.Runs && lifecycle.For(s.Want.VM, nil).VMI != lifecycle.Absent {
		return fields
	}
	for i := range fields {
		if fields[i].Class != None {
			fields[i].Class, fields[i].Why = None, later
		}
	}
	return fields
}

func own(s Seen) Own {
	if s.Own != nil {
		return *s.Own
	}
	return Own{slices.Sorted(maps.Keys(s.Is.VMI.Labels)), slices.Sorted(maps.Keys(s.Is.VMI.Annotations))}
}

// matchers returns the names of instancetype and preference that are others; differs: so is what comes of them.
func matchers(s Seen, differs bool) []Field {
	var fields []Field
	for _, m := range []struct{ path, is, want string }{
		{"spec.instancetype", instancetypeOf(s.Is.VM), instancetypeOf(s.Want.VM)},
		{"spec.preference", preferenceOf(s.Is.VM), preferenceOf(s.Want.VM)},
	} {
		switch {
		case m.is == m.want:
		case differs:
			fields = append(fields, Field{m.path, Restart, "gives another machine"})
		case s.Is.Open || s.Want.Open:
			fields = append(fields, Field{m.path, Restart, "what it names isn't known here, so it may give another machine"})
		default:
			fields = append(fields, Field{m.path, None, "gives the same machine"})
		}
	}
	return fields
}

func instancetypeOf(vm *v1.VirtualMachine) string {
	if m := vm.Spec.Instancetype; m != nil {
		return m.Kind + "/" + m.Name + "/" + m.RevisionName + "/" + m.InferFromVolume
	}
	return ""
}

func preferenceOf(vm *v1.VirtualMachine) string {
	if m := vm.Spec.Preference; m != nil {
		return m.Kind + "/" + m.Name + "/" + m.RevisionName + "/" + m.InferFromVolume
	}
	return ""
}
