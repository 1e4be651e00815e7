package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/memorydump"
)

// dumpNow is when the rounds of these tests are, an hour after the VMI was made.
var dumpNow = epoch.Add(time.Hour)

func seconds(after time.Duration) *metav1.Time {
	t := metav1.NewTime(dumpNow.Add(after))
	return &t
}

// dumps is a machine with a volume for its dumps.
func dumps(phase v1.VirtualMachineInstancePhase, change ...func(*v1.VirtualMachineInstance)) *v1.VirtualMachineInstance {
	out := vmi(phase)
	d := &v1.MemoryDumpVolumeSource{}
	d.ClaimName = "claim"
	out.Spec.Volumes = []v1.Volume{{Name: "memory", VolumeSource: v1.VolumeSource{MemoryDump: d}}}
	for _, f := range change {
		f(out)
	}
	return out
}

// asked has the VMI asked for a dump that long after dumpNow; its node agent says of it what phase is.
func asked(after time.Duration, phase v1.VolumePhase, message string) func(*v1.VirtualMachineInstance) {
	return func(m *v1.VirtualMachineInstance) {
		st := v1.VolumeStatus{Name: "memory", Phase: phase, Message: message,
			MemoryDumpVolume: &v1.DomainMemoryDumpInfo{ClaimName: "claim", StartTimestamp: seconds(after)}}
		if phase != "" {
			st.MemoryDumpVolume.TargetFileName = memorydump.File("web", "memory", dumpNow.Add(after))
			st.MemoryDumpVolume.EndTimestamp = seconds(after + time.Second)
		}
		m.Status.VolumeStatus = []v1.VolumeStatus{st}
	}
}

// request is one of that phase, begun that long after dumpNow.
func request(phase v1.MemoryDumpPhase, after time.Duration) *v1.VirtualMachineMemoryDumpRequest {
	return &v1.VirtualMachineMemoryDumpRequest{ClaimName: "claim", Phase: phase, StartTimestamp: seconds(after)}
}

// round is what one round does for a dump, and how the request is left.
func round(r *v1.VirtualMachineMemoryDumpRequest, m *v1.VirtualMachineInstance) string {
	s := plan.Seen{VM: vm(v1.RunStrategyManual), VMI: m, Config: config.From(nil)}
	s.VM.Status.MemoryDumpRequest = r
	var did []string
	for _, a := range plan.For(dumpNow, s).Actions {
		if line := told(a); line != "" {
			did = append(did, line)
		}
	}
	return strings.Join(did, ", ")
}

// told is an action on dumps as one line; empty: it is another.
func told(a plan.Action) string {
	switch a := a.(type) {
	case plan.SetDump:
		return left(a.Request)
	case plan.AskDump:
		if a.Info == nil {
			return "take back"
		}
		return fmt.Sprintf("ask %s %s %s", a.Volume, a.Info.ClaimName, a.Info.StartTimestamp.Sub(dumpNow))
	case plan.NameDump:
		return "name " + a.Claim + " " + a.File
	}
	return ""
}

// left is a request as it is left.
func left(r *v1.VirtualMachineMemoryDumpRequest) string {
	switch {
	case r == nil:
		return "forget"
	case r.Message != "":
		return string(r.Phase) + ": " + r.Message
	case r.Phase == v1.MemoryDumpCompleted:
		return fmt.Sprintf("%s %s after %s", r.Phase, *r.FileName, r.EndTimestamp.Sub(r.StartTimestamp.Time))
	}
	return string(r.Phase)
}

func TestMemoryDumpsGoStepByStep(t *testing.T) {
	const gone = "Failed: the guest ended before its memory was dumped: start the VM and ask again"
	file := memorydump.File("web", "memory", dumpNow)
	first := &v1.VirtualMachineMemoryDumpRequest{ClaimName: "claim", Phase: v1.MemoryDumpAssociating}
	removal := request(v1.MemoryDumpDissociating, 0)
	removal.Remove = true
	ending := dumps(v1.Running, asked(0, v1.MemoryDumpVolumeInProgress, ""))
	ending.DeletionTimestamp = seconds(0)
	other := dumps(v1.Running)
	other.Spec.Volumes[0].MemoryDump.ClaimName = "other"
	younger := dumps(v1.Running, func(m *v1.VirtualMachineInstance) { m.CreationTimestamp = *seconds(time.Minute) })
	for name, tc := range map[string]struct {
		request *v1.VirtualMachineMemoryDumpRequest
		vmi     *v1.VirtualMachineInstance
		want    string
	}{
		"none":                            {nil, dumps(v1.Running), ""},
		"none, though one was asked for":  {nil, dumps(v1.Running, asked(0, "", "")), "take back"},
		"the first":                       {first, dumps(v1.Running), "InProgress, ask memory claim 0s"},
		"the guest starts":                {first, dumps(v1.Scheduled), ""},
		"there is no guest":               {first, nil, gone},
		"the guest is done":               {first, dumps(v1.Failed), gone},
		"the guest is ending":             {first, ending, gone + ", take back"},
		"a volume of another claim":       {first, other, `Failed: claimName: Invalid value: "claim": must be "other", the claim of memoryDump volume "memory"`},
		"the second in one second":        {first, dumps(v1.Running, asked(0, v1.MemoryDumpVolumeCompleted, "")), "InProgress, ask memory claim 1s"},
		"clocks differ":                   {first, younger, "InProgress, ask memory claim 1m0s"},
		"it was recorded, and not asked":  {request(v1.MemoryDumpInProgress, 0), dumps(v1.Running), "ask memory claim 0s"},
		"nothing is heard yet":            {request(v1.MemoryDumpInProgress, 0), dumps(v1.Running, asked(0, "", "")), ""},
		"it runs":                         {request(v1.MemoryDumpInProgress, 0), dumps(v1.Running, asked(0, v1.MemoryDumpVolumeInProgress, "")), ""},
		"an answer to an older one":       {request(v1.MemoryDumpInProgress, 0), dumps(v1.Running, asked(-time.Minute, v1.MemoryDumpVolumeCompleted, "")), "ask memory claim 0s"},
		"it is there":                     {request(v1.MemoryDumpInProgress, 0), dumps(v1.Running, asked(0, v1.MemoryDumpVolumeCompleted, "")), "name claim " + file + ", Completed " + file + " after 1s"},
		"it is there, and the guest done": {request(v1.MemoryDumpInProgress, 0), dumps(v1.Succeeded, asked(0, v1.MemoryDumpVolumeCompleted, "")), "name claim " + file + ", Completed " + file + " after 1s"},
		"it failed":                       {request(v1.MemoryDumpInProgress, 0), dumps(v1.Running, asked(0, v1.MemoryDumpVolumeFailed, "no room")), "Failed: no room, take back"},
		"the guest ends meanwhile":        {request(v1.MemoryDumpInProgress, 0), ending, gone + ", take back"},
		"there is another guest":          {request(v1.MemoryDumpInProgress, 0), younger, gone},
		"nothing was heard":               {request(v1.MemoryDumpInProgress, -time.Hour), dumps(v1.Running, asked(-time.Hour, "", "")), "Failed: nothing was heard of the dump in 3m0s: look at virt-handler on node , take back"},
		"done":                            {request(v1.MemoryDumpCompleted, 0), dumps(v1.Running, asked(0, v1.MemoryDumpVolumeCompleted, "")), ""},
		"done, and another guest":         {request(v1.MemoryDumpCompleted, 0), younger, ""},
		"done, and no guest":              {request(v1.MemoryDumpCompleted, 0), nil, ""},
		"failed":                          {request(v1.MemoryDumpFailed, 0), dumps(v1.Running), ""},
		"to be removed":                   {removal, dumps(v1.Running, asked(0, v1.MemoryDumpVolumeInProgress, "")), "take back, forget"},
		"to be removed, taken back":       {removal, dumps(v1.Running), "forget"},
		"to be removed, no guest":         {removal, nil, "forget"},
	} {
		if got := round(tc.request, tc.vmi); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
		}
	}
}

// A dump that nobody answers is looked at again when its time is over.
func TestAMemoryDumpHasADeadline(t *testing.T) {
	s := plan.Seen{VM: vm(v1.RunStrategyManual), VMI: dumps(v1.Running, asked(0, "", "")), Config: config.From(nil)}
	s.VM.Status.MemoryDumpRequest = request(v1.MemoryDumpInProgress, 0)
	if at := plan.For(dumpNow, s).Recheck; at.IsZero() || at.After(dumpNow.Add(3*time.Minute)) {
		t.Errorf("looked at again at %s", at)
	}
}
