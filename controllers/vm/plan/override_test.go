package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/override"
)

func actions(p plan.Plan) []string {
	var out []string
	for _, a := range p.Actions {
		out = append(out, a.String())
	}
	return out
}

// An override holds in place of the run strategy until its time, is told once, and is dropped by whoever wrote it.
func TestAnOverride(t *testing.T) {
	until := epoch.Add(time.Hour)
	stop := override.Override{Until: until, Reason: "disk check", By: "ops"}
	s := plan.Seen{VM: vm(v1.RunStrategyAlways), VMI: vmi(v1.Running), Config: config.From(nil), OverrideIsOurs: true}
	s.VM.Annotations = map[string]string{names.RunOverride: stop.Annotation()}

	p := plan.For(epoch, s)
	if d := cmp.Diff([]string{"telling of the override of VM web", "stopping VMI web: run strategy Halted"}, actions(p)); d != "" {
		t.Error(d)
	}
	c := find(p.Status, plan.Overridden)
	if c == nil || c.Status != "True" || c.Message != "Halted until 2023-11-14T23:13:20Z by ops: disk check" {
		t.Errorf("condition: got %+v", c)
	}
	if !p.Recheck.Equal(until) || p.Status.RunStrategy != v1.RunStrategyHalted {
		t.Errorf("recheck %v, run strategy %s", p.Recheck, p.Status.RunStrategy)
	}

	s = happen(s, p)
	if p = plan.For(epoch.Add(time.Minute), s); len(p.Actions) > 0 || p.Status.PrintableStatus != v1.VirtualMachineStatusStopped {
		t.Errorf("once it holds: got %v, %s", actions(p), p.Status.PrintableStatus)
	}
	p = plan.For(until, s)
	if got := actions(p); got[0] != "dropping the override of VM web" || got[len(got)-1] != "starting VMI web: run strategy Always" {
		t.Errorf("at its end: got %v", got)
	}
	if find(p.Status, plan.Overridden) != nil {
		t.Error("at its end: the condition stays")
	}
	s.OverrideIsOurs = false
	if got := actions(plan.For(until, s)); got[0] == "dropping the override of VM web" {
		t.Errorf("one that comes from Git is dropped: %v", got)
	}
}

func TestAnUnreadableOverrideIsSaid(t *testing.T) {
	s := plan.Seen{VM: vm(v1.RunStrategyHalted), Config: config.From(nil)}
	s.VM.Annotations = map[string]string{names.RunOverride: "Always"}
	p := plan.For(epoch, s)
	if c := find(p.Status, plan.Overridden); c == nil || c.Status != "False" || c.Reason != "Unreadable" || len(p.Actions) > 0 {
		t.Errorf("got %+v and %v", c, actions(p))
	}
}
