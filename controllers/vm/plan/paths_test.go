package plan_test

import (
	"errors"
	"strings"
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/config"
)

// Whatever a VM says of its VMI, it says with the paths of its own fields: those are what its owner can change.
func TestWhatAVMSaysHasItsOwnPaths(t *testing.T) {
	const said, want = `spec.volumes[0].containerDisk.path: Invalid value: "/x": there is none`, `spec.template.spec.volumes[0].containerDisk.path: Invalid value: "/x": there is none`
	kinds := []string{"Synchronized", "Ready", "AccessCredentialsSynchronized", "LiveMigratable"}
	seen := func(phase v1.VirtualMachineInstancePhase) plan.Seen {
		s := plan.Seen{VM: vm(v1.RunStrategyOnce), VMI: vmi(phase), Config: config.From(nil)}
		for _, kind := range kinds {
			c := isFalse(kind, "X")
			c.Message = said
			s.VMI.Status.Conditions = append(s.VMI.Status.Conditions, c)
		}
		return s
	}
	for name, s := range map[string]plan.Seen{"scheduled": seen(v1.Scheduled), "running": seen(v1.Running), "failed": seen(v1.Failed)} {
		for range 2 { // the first round records a failure
			s.VM.Status = plan.For(epoch.AddDate(0, 0, 1), s).Status
		}
		stalled, told := find(s.VM.Status, plan.Stalled), 0
		if stalled == nil || stalled.Message != want {
			t.Errorf("%s: stalled: %+v", name, stalled)
		}
		for _, c := range s.VM.Status.Conditions {
			if strings.Contains(strings.ReplaceAll(c.Message, want, ""), "spec.volumes") {
				t.Errorf("%s: %s says %q", name, c.Type, c.Message)
			}
			if c.Message == want {
				told++
			}
		}
		if told < len(kinds) {
			t.Errorf("%s: %d conditions say it, want at least %d: %+v", name, told, len(kinds), s.VM.Status.Conditions)
		}
		if got := s.VMI.Status.Conditions[0].Message; got != said {
			t.Errorf("%s: the VMI itself was changed: %q", name, got)
		}
		for _, c := range plan.Failed(epoch, s, plan.Plan{}, errors.New("no luck")).Conditions {
			if c.Message == said {
				t.Errorf("%s, and a write fails: %s says %q", name, c.Type, c.Message)
			}
		}
	}
}
