package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/memorydump"
)

const dumpFile = "web-dumps-20260501-115900.memory.dump"

// dumped is a VMI with a volume for dumps, asked for one a minute ago; phase is what its status says of it.
func dumped(phase v1.VolumePhase, file string) *v1.VirtualMachineInstance {
	return vmi(v1.Running, func(m *v1.VirtualMachineInstance) {
		source := &v1.MemoryDumpVolumeSource{}
		source.ClaimName = "claim"
		m.Spec.Volumes = append(m.Spec.Volumes, v1.Volume{Name: "dumps", VolumeSource: v1.VolumeSource{MemoryDump: source}})
		at := metav1.NewTime(now.Add(-time.Minute))
		m.Status.VolumeStatus = []v1.VolumeStatus{{Name: "dumps", Phase: phase,
			MemoryDumpVolume: &v1.DomainMemoryDumpInfo{ClaimName: "claim", StartTimestamp: &at, TargetFileName: file}}}
	})
}

func podForDumps() *k8sv1.Pod {
	p := pod()
	p.Spec.Volumes = []k8sv1.Volume{{Name: "claim-dumps"}}
	return p
}

func unasked() *v1.VirtualMachineInstance {
	m := dumped("", "")
	m.Status.VolumeStatus = nil
	return m
}

func TestDumps(t *testing.T) {
	const ask, end = "dumping the guest's memory to " + dumpFile, "ending the dump of the guest's memory"
	other := func(change func(*v1.VirtualMachineInstance)) *v1.VirtualMachineInstance {
		m := dumped("", "")
		change(m)
		return m
	}
	for name, tc := range map[string]struct {
		vmi   *v1.VirtualMachineInstance
		said  *guestv1.Dump
		do    string
		phase v1.VolumePhase
		event string
	}{
		"not asked for":        {unasked(), nil, "", "", ""},
		"asked for":            {dumped("", ""), nil, ask, "", ""},
		"of another claim":     {other(func(m *v1.VirtualMachineInstance) { m.Status.VolumeStatus[0].MemoryDumpVolume.ClaimName = "x" }), nil, "", "", ""},
		"of no such volume":    {other(func(m *v1.VirtualMachineInstance) { m.Status.VolumeStatus[0].Name = "root" }), nil, "", "", ""},
		"it runs":              {dumped("", ""), &guestv1.Dump{Volume: "dumps", File: dumpFile, Running: true}, "", v1.MemoryDumpVolumeInProgress, "MemoryDumpInProgress"},
		"it runs, as was said": {dumped(v1.MemoryDumpVolumeInProgress, dumpFile), &guestv1.Dump{Volume: "dumps", File: dumpFile, Running: true}, "", v1.MemoryDumpVolumeInProgress, ""},
		"it is there":          {dumped(v1.MemoryDumpVolumeInProgress, dumpFile), &guestv1.Dump{Volume: "dumps", File: dumpFile, Ended: timestamppb.New(now)}, "", v1.MemoryDumpVolumeCompleted, "MemoryDumpCompleted"},
		"it failed":            {dumped(v1.MemoryDumpVolumeInProgress, dumpFile), &guestv1.Dump{Volume: "dumps", File: dumpFile, Problem: "full"}, "", v1.MemoryDumpVolumeFailed, "MemoryDumpFailed"},
		"it was there":         {dumped(v1.MemoryDumpVolumeCompleted, dumpFile), nil, "", v1.MemoryDumpVolumeCompleted, ""},
		"an older one runs":    {dumped("", ""), &guestv1.Dump{Volume: "dumps", File: "older", Running: true}, end, "", ""},
		"an older one is done": {dumped("", ""), &guestv1.Dump{Volume: "dumps", File: "older"}, ask, "", ""},
		"one was taken back":   {unasked(), &guestv1.Dump{Volume: "dumps", File: dumpFile, Running: true}, end, "", ""},
		"the guest is ending":  {other(func(m *v1.VirtualMachineInstance) { m.DeletionTimestamp = &metav1.Time{Time: now} }), nil, "asking the guest to shut down", "", ""},
	} {
		g := guest(guestv1.State_PHASE_RUNNING)
		g.Dump = tc.said
		p := For(now, Seen{Node: here, VMI: tc.vmi, Pod: podForDumps(), Guest: g})
		do, event := "", ""
		if len(p.Actions) > 0 {
			do = p.Actions[0].String()
		}
		if len(p.Events) > 0 {
			event = p.Events[0].Reason
		}
		i := slices.IndexFunc(p.Status.VolumeStatus, func(v v1.VolumeStatus) bool { return v.Name == "dumps" })
		st := v1.VolumeStatus{}
		if i >= 0 {
			st = p.Status.VolumeStatus[i]
		}
		if do != tc.do || st.Phase != tc.phase || event != tc.event || st.Phase != "" && st.MemoryDumpVolume.TargetFileName != dumpFile {
			t.Errorf("%s: got %q, %+v, event %q; want %q, %q, event %q", name, do, st, event, tc.do, tc.phase, tc.event)
		}
	}
}

func TestADumpToAClaimThatCameAfterThePodFails(t *testing.T) {
	p := For(now, Seen{Node: here, VMI: dumped("", ""), Pod: pod(), Guest: guest(guestv1.State_PHASE_RUNNING)})
	if len(p.Actions) > 0 {
		t.Errorf("got %s", p.Actions)
	}
	said := memorydump.Of(&v1.VirtualMachineInstance{Status: *p.Status})
	if said.Phase != v1.MemoryDumpVolumeFailed || said.File != dumpFile || !strings.Contains(said.Message, "restart the VM") {
		t.Errorf("got %+v", said)
	}
}
