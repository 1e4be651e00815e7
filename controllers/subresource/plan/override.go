package plan

import (
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/override"
)

// SetOverride writes the word that is to hold in place of a run strategy that comes from Git.
type SetOverride struct {
	VM       *v1.VirtualMachine
	Override override.Override
}

// DropOverride takes it back: what Git says holds again.
type DropOverride struct{ VM *v1.VirtualMachine }

func (a SetOverride) String() string  { return "overriding what Git says: " + a.Override.String() }
func (a DropOverride) String() string { return "taking the override back" }

// Patch returns what is applied as names.OverrideManager; it holds only for the VM as it was seen.
func (a SetOverride) Patch() []byte {
	return applied(a.VM, map[string]string{names.RunOverride: a.Override.Annotation()})
}

// Patch is SetOverride's.
func (a DropOverride) Patch() []byte { return applied(a.VM, map[string]string{}) }

func applied(vm *v1.VirtualMachine, annotations map[string]string) []byte {
	return encode(map[string]any{
		"apiVersion": v1.GroupVersion.String(), "kind": "VirtualMachine",
		"metadata": map[string]any{
			"namespace": vm.Namespace, "name": vm.Name, "uid": vm.UID, "resourceVersion": vm.ResourceVersion,
			"annotations": annotations,
		},
	})
}

// overridden returns all that a verb does which wants the VM to run, or not to, where it is asked for as an override or
// takes one back; nil: it is decided on the VM as an override, if one holds, has it.
func overridden(s Seen, run bool) (Action, error) {
	live := override.Active(s.Now, s.VM)
	agrees := (lifecycle.Strategy(s.VM) == v1.RunStrategyAlways) == run // Git and the verb
	switch {
	case s.Asked == nil && (live == nil || live.Run == run || !agrees):
		return nil, nil
	case s.Asked == nil:
		return drop(s)
	case !override.Overridable(s.VM):
		return nil, Conflict(s.VM, "override: run strategy %s is started and stopped without a change of spec: leave override out", lifecycle.Strategy(s.VM))
	case gitRefusal(s, run) == nil:
		return nil, Conflict(s.VM, "override: no Git tool owns the run strategy: leave override out")
	case agrees && live == nil:
		return nil, Conflict(s.VM, "override: Git says %q already", strategyLine(s.VM, run))
	case agrees:
		return drop(s)
	}
	word := *s.Asked
	word.Run = run
	return SetOverride{s.VM, word}, nil
}

// drop takes the override of a VM back, if it isn't for someone else to do.
func drop(s Seen) (Action, error) {
	if !s.OverrideIsOurs {
		return nil, Conflict(s.VM, "metadata.annotations[%s] was not written by start or stop: take it away where it comes from", names.RunOverride)
	}
	return DropOverride{s.VM}, nil
}
