package plan_test

import (
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/memorydump"
)

// carried does the first of a round's actions on dumps: the controller is killed after so many.
func carried(s plan.Seen, actions []plan.Action, first int) plan.Seen {
	s.VM = s.VM.DeepCopy()
	for i, a := range actions {
		if i == first {
			break
		}
		switch a := a.(type) {
		case plan.SetDump:
			s.VM.Status.MemoryDumpRequest = a.Request
		case plan.AskDump:
			s.VMI = a.VMI.DeepCopy()
			s.VMI.Status.VolumeStatus = nil
			if a.Info != nil {
				s.VMI.Status.VolumeStatus = []v1.VolumeStatus{{Name: a.Volume, MemoryDumpVolume: a.Info}}
			}
		}
	}
	return s
}

// answered has the node agent answer what it is asked, if it does.
func answered(s plan.Seen, phase v1.VolumePhase) plan.Seen {
	said := memorydump.Status{}
	if s.VMI != nil {
		said = memorydump.Of(s.VMI)
	}
	if said.Asked == nil || phase == "" {
		return s
	}
	s.VMI = s.VMI.DeepCopy()
	st := &s.VMI.Status.VolumeStatus[0]
	st.Phase, st.MemoryDumpVolume.TargetFileName = phase, memorydump.File(s.VMI.Name, said.Volume, said.Asked.Time)
	return s
}

// Whatever the guest and its node agent do, and wherever the controller is killed, a request has an end by its deadline,
// and nothing is asked of the node agent that nobody wants.
func TestMemoryDumpsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answers := []v1.VolumePhase{"", v1.MemoryDumpVolumeInProgress, v1.MemoryDumpVolumeCompleted, v1.MemoryDumpVolumeFailed}
		s := plan.Seen{VM: vm(v1.RunStrategyManual), VMI: dumps(v1.Running), Config: config.From(nil)}
		s.VM.Status.MemoryDumpRequest = &v1.VirtualMachineMemoryDumpRequest{ClaimName: "claim", Phase: v1.MemoryDumpAssociating}
		now := dumpNow
		for range 20 {
			p := plan.For(now, s)
			s = carried(s, p.Actions, rapid.IntRange(0, 4).Draw(t, "killed after"))
			s = answered(s, rapid.SampledFrom(answers).Draw(t, "answer"))
			if rapid.IntRange(0, 9).Draw(t, "the guest ends") == 0 {
				s.VMI = nil
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds")) * time.Second)
		}
		for range 5 {
			p := plan.For(now, s)
			s = carried(s, p.Actions, len(p.Actions))
			now = now.Add(5 * time.Minute)
		}
		if p := plan.For(now, s); len(p.Actions) > 0 {
			t.Fatalf("still to do: %v", p.Actions)
		}
		r := s.VM.Status.MemoryDumpRequest
		if r.Phase != v1.MemoryDumpCompleted && r.Phase != v1.MemoryDumpFailed || r.EndTimestamp == nil || (r.Phase == v1.MemoryDumpCompleted) != (r.FileName != nil) {
			t.Fatalf("left as %+v", r)
		}
		if asks := s.VMI != nil && memorydump.Of(s.VMI).Asked != nil; asks && r.Phase != v1.MemoryDumpCompleted {
			t.Fatalf("asked for though %s", r.Phase)
		}
	})
}
