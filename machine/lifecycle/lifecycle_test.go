package lifecycle_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/machine/lifecycle"
)

func vm(s v1.VirtualMachineRunStrategy, edit ...func(*v1.VirtualMachine)) *v1.VirtualMachine {
	out := &v1.VirtualMachine{}
	out.Name, out.Generation, out.Status.ObservedGeneration = "web", 1, 1
	out.Spec.RunStrategy = &s
	out.Status.RunStrategy = s
	for _, e := range edit {
		e(out)
	}
	return out
}

func vmi(phase v1.VirtualMachineInstancePhase) *v1.VirtualMachineInstance {
	out := &v1.VirtualMachineInstance{}
	out.UID, out.Status.Phase = "one", phase
	return out
}

func requests(r ...v1.VirtualMachineStateChangeRequest) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) { vm.Status.StateChangeRequests = r }
}

var (
	one   = types.UID("one")
	two   = types.UID("two")
	start = v1.VirtualMachineStateChangeRequest{Action: v1.StartRequest}
	stop  = v1.VirtualMachineStateChangeRequest{Action: v1.StopRequest, UID: &one}
	still = v1.VirtualMachineStateChangeRequest{Action: v1.StartRequest, Data: map[string]string{"paused": "true"}}
	noon  = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	word  = lifecycle.PausedStart(noon.Add(-29 * time.Second))
	stale = lifecycle.PausedStart(noon.Add(-30 * time.Second))
	other = v1.VirtualMachineStateChangeRequest{Action: v1.StopRequest, UID: &two}
)

func before(vm *v1.VirtualMachine)   { vm.Status.RunStrategy = v1.RunStrategyHalted }
func deleting(vm *v1.VirtualMachine) { vm.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} }

func TestVerdicts(t *testing.T) {
	yes := true
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		vmi  *v1.VirtualMachineInstance
		want lifecycle.Verdict
	}{
		"always, none":                        {vm(v1.RunStrategyAlways), nil, lifecycle.Present},
		"always, running":                     {vm(v1.RunStrategyAlways), vmi(v1.Running), lifecycle.Present},
		"always, ended":                       {vm(v1.RunStrategyAlways), vmi(v1.Succeeded), lifecycle.Absent},
		"always, stop asked":                  {vm(v1.RunStrategyAlways, requests(stop, start)), vmi(v1.Running), lifecycle.Absent},
		"always, stop asked of another":       {vm(v1.RunStrategyAlways, requests(other)), vmi(v1.Running), lifecycle.Present},
		"halted, none":                        {vm(v1.RunStrategyHalted), nil, lifecycle.Absent},
		"halted, running":                     {vm(v1.RunStrategyHalted), vmi(v1.Running), lifecycle.Absent},
		"deleting":                            {vm(v1.RunStrategyAlways, deleting), vmi(v1.Running), lifecycle.Absent},
		"once, none":                          {vm(v1.RunStrategyOnce), nil, lifecycle.Present},
		"once, ended":                         {vm(v1.RunStrategyOnce), vmi(v1.Failed), lifecycle.Present},
		"once, stopped":                       {vm(v1.RunStrategyOnce, requests(stop)), nil, lifecycle.Keep},
		"manual, none":                        {vm(v1.RunStrategyManual), nil, lifecycle.Keep},
		"manual, start asked":                 {vm(v1.RunStrategyManual, requests(start)), nil, lifecycle.Present},
		"manual, ended":                       {vm(v1.RunStrategyManual), vmi(v1.Succeeded), lifecycle.Keep},
		"manual, ended, start asked":          {vm(v1.RunStrategyManual, requests(start)), vmi(v1.Succeeded), lifecycle.Absent},
		"rerun, just set":                     {vm(v1.RunStrategyRerunOnFailure, before), nil, lifecycle.Present},
		"rerun, was stopped":                  {vm(v1.RunStrategyRerunOnFailure), nil, lifecycle.Keep},
		"rerun, shut down":                    {vm(v1.RunStrategyRerunOnFailure), vmi(v1.Succeeded), lifecycle.Absent},
		"rerun, failed, start not queued yet": {vm(v1.RunStrategyRerunOnFailure), vmi(v1.Failed), lifecycle.Keep},
		"rerun, failed, start queued":         {vm(v1.RunStrategyRerunOnFailure, requests(start)), vmi(v1.Failed), lifecycle.Absent},
		"spec.running":                        {&v1.VirtualMachine{Spec: v1.VirtualMachineSpec{Running: &yes}}, nil, lifecycle.Present},
	} {
		if got := lifecycle.For(tc.vm, tc.vmi); got.VMI != tc.want || got.Why == "" {
			t.Errorf("%s: got %+v, want verdict %d and a reason", name, got, tc.want)
		}
	}
}

func TestRequestsThatAreLeft(t *testing.T) {
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		vmi  *v1.VirtualMachineInstance
		want []v1.VirtualMachineStateChangeRequest
	}{
		"stop not met":             {vm(v1.RunStrategyAlways, requests(stop, start)), vmi(v1.Running), []v1.VirtualMachineStateChangeRequest{stop, start}},
		"stop met, start not":      {vm(v1.RunStrategyAlways, requests(stop, start)), nil, []v1.VirtualMachineStateChangeRequest{start}},
		"stop of another":          {vm(v1.RunStrategyAlways, requests(other)), vmi(v1.Running), nil},
		"stop under once":          {vm(v1.RunStrategyOnce, requests(stop)), nil, []v1.VirtualMachineStateChangeRequest{stop}},
		"start met":                {vm(v1.RunStrategyManual, requests(start)), vmi(v1.Pending), nil},
		"start under Halted":       {vm(v1.RunStrategyHalted, requests(start)), nil, nil},
		"start paused, met":        {vm(v1.RunStrategyAlways, requests(still)), vmi(v1.Pending), nil},
		"start paused, not yet":    {vm(v1.RunStrategyHalted, requests(word)), nil, []v1.VirtualMachineStateChangeRequest{word}},
		"start paused, cut off":    {vm(v1.RunStrategyHalted, requests(stale)), nil, nil},
		"start paused, of before":  {vm(v1.RunStrategyHalted, requests(still)), nil, nil},
		"start paused, a bit late": {vm(v1.RunStrategyAlways, requests(stale)), nil, []v1.VirtualMachineStateChangeRequest{stale}},
		"failed under rerun":       {vm(v1.RunStrategyRerunOnFailure), vmi(v1.Failed), []v1.VirtualMachineStateChangeRequest{start}},
		"failed under always":      {vm(v1.RunStrategyAlways), vmi(v1.Failed), nil},
		"failed, queued a while":   {vm(v1.RunStrategyRerunOnFailure, requests(start)), vmi(v1.Failed), []v1.VirtualMachineStateChangeRequest{start}},
		"shut down under rerun":    {vm(v1.RunStrategyRerunOnFailure), vmi(v1.Succeeded), nil},
		"failed, VM being deleted": {vm(v1.RunStrategyRerunOnFailure, deleting), vmi(v1.Failed), nil},
	} {
		if diff := cmp.Diff(tc.want, lifecycle.Requests(noon, tc.vm, tc.vmi)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A halted VM whose paused start was cut off is looked at again when that is forgotten.
func TestWhenAPausedStartIsForgotten(t *testing.T) {
	for name, tc := range map[string]struct {
		vm   *v1.VirtualMachine
		want time.Time
	}{
		"none":           {vm(v1.RunStrategyHalted), time.Time{}},
		"waits":          {vm(v1.RunStrategyHalted, requests(word)), noon.Add(time.Second)},
		"another":        {vm(v1.RunStrategyHalted, requests(start)), time.Time{}},
		"strategy is in": {vm(v1.RunStrategyAlways, requests(word)), time.Time{}},
	} {
		if got := lifecycle.ForgetsAt(tc.vm); !got.Equal(tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func TestPausesGrowWithinTheirBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		uid := types.UID(rapid.String().Draw(t, "uid"))
		got := lifecycle.Pause(n, uid)
		base := min(10*time.Second*time.Duration(min(n, 10)*min(n, 10)), 300*time.Second)
		if got < base || got > min(base+base/2, 300*time.Second) {
			t.Fatalf("pause %d of %q: got %v, want between %v and half more", n, uid, got, base)
		}
		if again := lifecycle.Pause(n, uid); again != got {
			t.Fatalf("pause %d of %q: %v, then %v", n, uid, got, again)
		}
	})
}

func TestStartFailures(t *testing.T) {
	now := time.Unix(1000, 0)
	ran := vmi(v1.Failed)
	ran.Status.PhaseTransitionTimestamps = []v1.VirtualMachineInstancePhaseTransitionTimestamp{{Phase: v1.Running}}
	counted := func(vm *v1.VirtualMachine) {
		vm.Status.StartFailure = &v1.VirtualMachineStartFailure{ConsecutiveFailCount: 2, LastFailedVMIUID: two, RetryAfterTimestamp: &metav1.Time{Time: now}}
	}
	seen := func(vm *v1.VirtualMachine) { counted(vm); vm.Status.StartFailure.LastFailedVMIUID = one }
	edited := func(vm *v1.VirtualMachine) { seen(vm); vm.Generation++ }
	for name, tc := range map[string]struct {
		vm    *v1.VirtualMachine
		vmi   *v1.VirtualMachineInstance
		count int
		wait  bool
	}{
		"first":             {vm(v1.RunStrategyAlways), vmi(v1.Failed), 1, true},
		"third":             {vm(v1.RunStrategyAlways, counted), vmi(v1.Failed), 3, true},
		"the same again":    {vm(v1.RunStrategyAlways, seen), vmi(v1.Failed), 2, true},
		"gone":              {vm(v1.RunStrategyAlways, seen), nil, 2, true},
		"spec changed":      {vm(v1.RunStrategyAlways, edited), vmi(v1.Failed), 0, false},
		"it ran":            {vm(v1.RunStrategyAlways, counted), ran, 0, false},
		"starting":          {vm(v1.RunStrategyAlways), vmi(v1.Scheduling), 0, false},
		"halted in between": {vm(v1.RunStrategyHalted, seen), nil, 0, false},
		"once doesn't wait": {vm(v1.RunStrategyOnce), vmi(v1.Failed), 1, false},
		"a stop isn't a failure": {vm(v1.RunStrategyAlways), func() *v1.VirtualMachineInstance {
			v := vmi(v1.Failed)
			v.DeletionTimestamp = &metav1.Time{Time: now}
			return v
		}(), 0, false},
	} {
		f := lifecycle.StartFailure(now, tc.vm, tc.vmi)
		count := 0
		if f != nil {
			count = f.ConsecutiveFailCount
		}
		if wait := !lifecycle.RetryAt(tc.vm, f).IsZero(); count != tc.count || wait != tc.wait {
			t.Errorf("%s: got %d failures, waiting %v; want %d, %v", name, count, wait, tc.count, tc.wait)
		}
	}
}
