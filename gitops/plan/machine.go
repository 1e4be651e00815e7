package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/change"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/instancetype"
	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/names"
)

type planner struct {
	live     bool
	guests   map[string]*v1.VirtualMachineInstance
	from, to side
	machines map[key]settled
	capacity totals
}

// settled is what is known of a change of a VM.
type settled struct {
	change.Seen
	// errs say why what the VM asks for makes no machine, though it did before.
	errs field.ErrorList
	// starts: its Pod is there, or will be, and its guest doesn't run yet.
	starts bool
	totals totals
}

// settle looks at every VM of either side.
func (p *planner) settle() {
	p.machines = map[key]settled{}
	for k := range keysOf(p.from.vms, p.to.vms) {
		p.machines[k] = p.settled(p.guests[k.namespace+"/"+k.name], p.from.vms[k], p.to.vms[k])
	}
}

// settled compares a VM with what it is to be. Of a cluster guest is its VMI, nil: it has none.
func (p *planner) settled(guest *v1.VirtualMachineInstance, is, want *v1.VirtualMachine) settled {
	var s settled
	before, after := p.choices(is, want)
	var wrong field.ErrorList
	if is != nil {
		s.Is, wrong = machineOf(is, before, p.from.config)
		s.Runs = change.MayRun(is)
	}
	if p.live {
		s.Runs = false
	}
	cfg := p.to.config
	if is != nil {
		cfg = cfg.With(p.from.config.Defaults())
	}
	if p.live && is != nil && guest != nil {
		s.Runs, s.Is.VMI = guest.Status.Phase == v1.Running, guest
		s.starts = !s.Runs && !guest.IsFinal()
		s.Own = &change.Own{Labels: keysIn(is.Spec.Template.ObjectMeta.Labels), Annotations: keysIn(is.Spec.Template.ObjectMeta.Annotations)}
		cfg = defaults.Recorded(guest, p.to.config)
	}
	if want != nil {
		s.Want, s.errs = machineOf(want, after, cfg)
		if len(wrong) > 0 {
			s.errs = nil // nothing new
		}
	}
	s.totals = s.requests(p.from.config, p.to.config)
	return s
}

func keysIn(m map[string]string) []string {
	var out []string
	for k := range names.Untracked(m) {
		out = append(out, k)
	}
	return out
}

// requests returns what the guests that run or start ask for, before and after.
func (s settled) requests(from, to config.Config) totals {
	var t totals
	on := s.Runs || s.starts
	if s.Is.VM != nil && s.Is.VMI != nil && on {
		t.before = requests(s.Is.VMI, from)
	}
	if s.Want.VM == nil || s.Want.VMI == nil {
		return t
	}
	if want := lifecycle.For(s.Want.VM, nil).VMI; want == lifecycle.Present || want == lifecycle.Keep && on {
		t.after = requests(s.Want.VMI, to)
	}
	return t
}

// choice is what a VM's matchers give; open: not all of it is known.
type choice struct {
	instancetype.Choice
	open bool
}

// choices returns what the matchers give on both sides. A VM keeps the instancetype that it was first given, whatever
// becomes of that, until it names another one.
func (p *planner) choices(is, want *v1.VirtualMachine) (before, after choice) {
	for _, preference := range []bool{false, true} {
		a, had := matcher(is, preference)
		b, has := matcher(want, preference)
		known := had && (p.restored(&before.Choice, a, is) || p.from.choose(&before.Choice, a, is.Namespace))
		switch {
		case has && had && same(a, b) && known:
			take(&after.Choice, before.Choice, preference)
		case has && p.to.choose(&after.Choice, b, want.Namespace):
			if had && same(a, b) { // it comes with this commit, and the VM has waited for it
				take(&before.Choice, after.Choice, preference)
				known = true
			}
		case has:
			after.open = true
		}
		before.open = before.open || had && !known
	}
	return before, after
}

// restored sets in c what the VM's status says that it keeps.
func (p *planner) restored(c *instancetype.Choice, m instancetype.Matcher, vm *v1.VirtualMachine) bool {
	ref := vm.Status.InstancetypeRef
	if m.Preference {
		ref = vm.Status.PreferenceRef
	}
	return m.RevisionName == "" && m.Kept(ref) && ref.ControllerRevisionRef != nil &&
		p.from.restore(c, m, vm.Namespace, ref.ControllerRevisionRef.Name)
}

func matcher(vm *v1.VirtualMachine, preference bool) (instancetype.Matcher, bool) {
	if vm == nil {
		return instancetype.Matcher{}, false
	}
	for _, m := range instancetype.Matchers(vm) {
		if m.Preference == preference {
			return m, true
		}
	}
	return instancetype.Matcher{}, false
}

func same(a, b instancetype.Matcher) bool {
	return a.Kind == b.Kind && a.Name == b.Name && a.RevisionName == b.RevisionName && a.InferFromVolume == b.InferFromVolume
}

func take(to *instancetype.Choice, from instancetype.Choice, preference bool) {
	if preference {
		to.Preference = from.Preference
		return
	}
	to.Instancetype = from.Instancetype
}

func machineOf(vm *v1.VirtualMachine, c choice, cfg config.Config) (change.Side, field.ErrorList) {
	s := change.Side{VM: vm, Open: c.open}
	full, errs := instancetype.Expand(vm, c.Choice, cfg)
	if len(errs) == 0 {
		s.VMI = defaults.VMI(full, cfg)
	}
	return s, errs
}

// machine judges a VM.
func (p *planner) machine(i *Item, is, want Object) {
	shown := want
	if want.Unstructured == nil {
		shown = is
	}
	s, ok := p.machines[keyOf(shown.Unstructured)]
	if !ok {
		i.Notes = append(i.Notes, "it can't be read as a VM, so what it does can't be told")
		return
	}
	p.capacity.add(s.totals)
	if s.totals.changed() {
		c := s.totals.capacity()
		i.Capacity = &c
	}
	d := change.VM(s.Seen)
	if i.Change == Unchanged {
		if p.live && d.Class.Disruptive() {
			i.Notes = append(i.Notes, fmt.Sprintf("waits for a %s already: %s", d.Class, strings.Join(change.Paths(d.Fields, d.Class), ", ")))
		}
		return
	}
	i.Class, i.Lost, i.Kept = d.Class, d.Lost, d.Kept
	i.Fields = append(d.Fields, uncovered(i.Fields, d.Fields)...)
	for _, err := range s.errs {
		i.Refused = append(i.Refused, Refusal{err.Field, err.ErrorBody() + " (it is taken, but no guest can be made of it)"})
	}
	if s.Want.VM != nil && s.Want.Open {
		i.Notes = append(i.Notes, "its instancetype or preference is not among the objects: what that gives isn't counted")
	}
}

// uncovered returns those of fields that the effects say nothing of: they change nothing.
func uncovered(fields, effects []change.Field) []change.Field {
	var out []change.Field
	for _, f := range fields {
		if f.Path == "spec.running" || !covered(f.Path, effects) {
			out = append(out, f)
		}
	}
	return out
}

func covered(path string, effects []change.Field) bool {
	path = plain(path)
	for _, e := range effects {
		if at := plain(e.Path); path == at || strings.HasPrefix(path, at+".") || strings.HasPrefix(at, path+".") {
			return true
		}
	}
	return false
}

func plain(path string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(path)
}
