package plan_test

import (
	"fmt"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/lifecycle"
)

// virt-api says first how the guest is to begin, and then sets the run strategy. Killed in between, it leaves a word that
// would make another start, days later, come up paused.
func TestAPausedStartThatWasCutOffIsForgotten(t *testing.T) {
	s := plan.Seen{VM: vm(v1.RunStrategyHalted), Config: config.From(nil)}
	s.VM.Status.StateChangeRequests = []v1.VirtualMachineStateChangeRequest{lifecycle.PausedStart(epoch)}
	waits := plan.For(epoch.Add(time.Second), s)
	if len(waits.Actions) != 0 || !waits.Recheck.Equal(epoch.Add(30*time.Second)) {
		t.Errorf("at first: got %v, recheck %s", waits.Actions, waits.Recheck)
	}
	if p := plan.For(waits.Recheck, s); fmt.Sprint(p.Actions) != "[leaving 0 requests of VM web]" {
		t.Errorf("then: got %v", p.Actions)
	}
	always := v1.RunStrategyAlways
	s.VM.Spec.RunStrategy = &always
	p := plan.For(epoch.Add(time.Hour), s) // the controller was away; the strategy followed the word
	if len(p.Actions) != 2 || !p.Actions[1].(plan.StartVMI).VMI.ShouldStartPaused() {
		t.Errorf("a start that wasn't cut off: got %v", p.Actions)
	}
}
