package plan

import (
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/override"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func overriding(run bool, until time.Time) vmOption {
	return func(vm *v1.VirtualMachine) {
		vm.Annotations = map[string]string{names.RunOverride: override.Override{Run: run, Until: until, Reason: "old"}.Annotation()}
	}
}

// Case: what Git says can be set aside for a while, by a user who says why, and never otherwise.
func TestOverride(t *testing.T) {
	git := ownedBy("kustomize-controller", runStrategyField)
	later := noon.Add(time.Hour)
	asked := &override.Override{Until: noon.Add(2 * time.Hour), Reason: "disk check", By: "ops"}
	start := func(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance, asked *override.Override) string {
		return outcome(Start(Seen{VM: vm, VMI: vmi, Now: noon, Asked: asked, OverrideIsOurs: true}, v1.StartOptions{}))
	}
	stop := func(vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance, asked *override.Override) string {
		return outcome(Stop(Seen{VM: vm, VMI: vmi, Now: noon, Asked: asked, OverrideIsOurs: true}, v1.StopOptions{}))
	}
	set := func(s string) string {
		return "overriding what Git says: " + s + " until 2026-05-01T14:00:00Z by ops: disk check"
	}
	for name, tc := range map[string]struct{ got, want string }{
		"stop":                     {stop(vm(v1.RunStrategyAlways, git), vmi(v1.Running), asked), set("Halted")},
		"start":                    {start(vm(v1.RunStrategyHalted, git), nil, asked), set("Always")},
		"stop for longer":          {stop(vm(v1.RunStrategyAlways, git, overriding(false, later)), nil, asked), set("Halted")},
		"start for longer":         {start(vm(v1.RunStrategyHalted, git, overriding(true, later)), vmi(v1.Running), asked), set("Always")},
		"what Git says":            {start(vm(v1.RunStrategyAlways, git), nil, asked), `Conflict: override: Git says "runStrategy: Always" already`},
		"back to Git, as override": {start(vm(v1.RunStrategyAlways, git, overriding(false, later)), nil, asked), "taking the override back"},
		"back to Git":              {start(vm(v1.RunStrategyAlways, git, overriding(false, later)), nil, nil), "taking the override back"},
		"back to Git's stop":       {stop(vm(v1.RunStrategyHalted, git, overriding(true, later)), vmi(v1.Running), nil), "taking the override back"},
		"of someone else": {outcome(Start(Seen{VM: vm(v1.RunStrategyAlways, git, overriding(false, later)), Now: noon}, v1.StartOptions{})),
			"Conflict: metadata.annotations[virtstack.io/run-override] was not written by start or stop: take it away where it comes from"},
		"stop again":                {stop(vm(v1.RunStrategyAlways, git, overriding(false, later)), nil, nil), "Conflict: VM is not running"},
		"start again":               {start(vm(v1.RunStrategyHalted, git, overriding(true, later)), vmi(v1.Running), nil), "Conflict: VM is already running"},
		"after its end":             {stop(vm(v1.RunStrategyAlways, git, overriding(true, noon)), vmi(v1.Running), nil), stop(vm(v1.RunStrategyAlways, git), vmi(v1.Running), nil)},
		"nobody's":                  {stop(vm(v1.RunStrategyAlways), vmi(v1.Running), asked), "Conflict: override: no Git tool owns the run strategy: leave override out"},
		"not in the spec":           {stop(vm(v1.RunStrategyManual, git), vmi(v1.Running), asked), "Conflict: override: run strategy Manual is started and stopped without a change of spec: leave override out"},
		"restart of an overridden":  {outcome(Restart(Seen{VM: vm(v1.RunStrategyHalted, git, overriding(true, later)), VMI: vmi(v1.Running), Now: noon}, v1.RestartOptions{})), "requesting Stop Start"},
		"restart of one that rests": {outcome(Restart(Seen{VM: vm(v1.RunStrategyAlways, git, overriding(false, later)), Now: noon}, v1.RestartOptions{})), "Conflict: RunStategy Halted does not support manual restart requests"},
		"paused": {outcome(Start(Seen{VM: vm(v1.RunStrategyHalted, git), Now: noon, Asked: asked}, v1.StartOptions{Paused: true})),
			"Bad Request: paused: Forbidden: a start that is an override can't leave the guest paused"},
	} {
		if tc.got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, tc.got, tc.want)
		}
	}
}
