package plan_test

import (
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/controllers/vm/plan"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/lifecycle"
	"virtstack.io/virtstack/machine/mirror"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/override"
)

var epoch = time.Unix(1_700_000_000, 0)

func vm(s v1.VirtualMachineRunStrategy) *v1.VirtualMachine {
	out := &v1.VirtualMachine{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "vm", Generation: 1}}
	out.Spec.RunStrategy = &s
	out.Spec.Template = &v1.VirtualMachineInstanceTemplateSpec{}
	return out
}

func vmi(phase v1.VirtualMachineInstancePhase, conditions ...v1.VirtualMachineInstanceCondition) *v1.VirtualMachineInstance {
	out := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{
		Name: "web", Namespace: "shop", UID: "vmi", CreationTimestamp: metav1.NewTime(epoch),
		Annotations: map[string]string{v1.VirtualMachineGenerationAnnotation: "1"},
	}}
	out.Status.Phase, out.Status.Conditions = phase, conditions
	return out
}

func isFalse(kind, reason string) v1.VirtualMachineInstanceCondition {
	return v1.VirtualMachineInstanceCondition{
		Type: v1.VirtualMachineInstanceConditionType(kind), Status: k8sv1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.NewTime(epoch),
	}
}

func find(st v1.VirtualMachineStatus, kind string) *v1.VirtualMachineCondition {
	for i := range st.Conditions {
		if string(st.Conditions[i].Type) == kind {
			return &st.Conditions[i]
		}
	}
	return nil
}

func TestWordsForPeople(t *testing.T) {
	deleting := vmi(v1.Running)
	deleting.DeletionTimestamp = &metav1.Time{Time: epoch}
	paused := vmi(v1.Running, v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstancePaused, Status: k8sv1.ConditionTrue})
	moving := vmi(v1.Running)
	moving.Status.MigrationState = &v1.VirtualMachineInstanceMigrationState{StartTimestamp: &metav1.Time{Time: epoch}}
	for name, tc := range map[string]struct {
		strategy v1.VirtualMachineRunStrategy
		vmi      *v1.VirtualMachineInstance
		want     v1.VirtualMachinePrintableStatus
	}{
		"about to start": {v1.RunStrategyAlways, nil, v1.VirtualMachineStatusStarting},
		"starting":       {v1.RunStrategyAlways, vmi(v1.Scheduled), v1.VirtualMachineStatusStarting},
		"running":        {v1.RunStrategyAlways, vmi(v1.Running, isFalse("Ready", "X")), v1.VirtualMachineStatusRunning},
		"paused":         {v1.RunStrategyAlways, paused, v1.VirtualMachineStatusPaused},
		"stopping":       {v1.RunStrategyAlways, deleting, v1.VirtualMachineStatusStopping},
		"to be stopped":  {v1.RunStrategyHalted, vmi(v1.Running), v1.VirtualMachineStatusStopping},
		"halted":         {v1.RunStrategyHalted, nil, v1.VirtualMachineStatusStopped},
		"unschedulable":  {v1.RunStrategyAlways, vmi(v1.Scheduling, isFalse("PodScheduled", "Unschedulable")), v1.VirtualMachineStatusUnschedulable},
		"no image":       {v1.RunStrategyAlways, vmi(v1.Scheduling, isFalse("Synchronized", "ErrImagePull")), v1.VirtualMachineStatusErrImagePull},
		"pulling later":  {v1.RunStrategyAlways, vmi(v1.Scheduling, isFalse("Synchronized", "ImagePullBackOff")), v1.VirtualMachineStatusImagePullBackOff},
		"not supported":  {v1.RunStrategyAlways, vmi(v1.Pending, isFalse("Synchronized", "Unsupported")), "ErrorUnsupported"},
		"no claim":       {v1.RunStrategyAlways, vmi(v1.Pending, isFalse("Synchronized", "FailedPvcNotFound")), v1.VirtualMachineStatusPvcNotFound},
		"importing":      {v1.RunStrategyAlways, vmi(v1.Pending, isFalse("Synchronized", "DataVolumeNotReady")), v1.VirtualMachineStatusProvisioning},
		"import failed":  {v1.RunStrategyAlways, vmi(v1.Pending, isFalse("Synchronized", "FailedDataVolumeImport")), v1.VirtualMachineStatusDataVolumeError},
		"migrating":      {v1.RunStrategyAlways, moving, v1.VirtualMachineStatusMigrating},
		"shut down":      {v1.RunStrategyManual, vmi(v1.Succeeded), v1.VirtualMachineStatusStopped},
		"crashed":        {v1.RunStrategyAlways, vmi(v1.Failed), v1.VirtualMachineStatusCrashLoopBackOff},
	} {
		p := plan.For(epoch, plan.Seen{VM: vm(tc.strategy), VMI: tc.vmi, Config: config.From(nil)})
		if p.Status.PrintableStatus != tc.want {
			t.Errorf("%s: got %s, want %s", name, p.Status.PrintableStatus, tc.want)
		}
	}
}

// A spec that is mended takes the place of one whose guest isn't there yet, unless its launcher may be starting it.
func TestAMendedSpecIsNotWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		vmi  *v1.VirtualMachineInstance
		stop bool
	}{
		"waits for a Pod":           {vmi(v1.Pending, isFalse("Synchronized", "Unsupported")), true},
		"its launcher waits":        {vmi(v1.Scheduled, isFalse("Synchronized", "Synchronizing with the Domain failed.")), true},
		"its launcher may start it": {vmi(v1.Scheduled), false},
		"runs, whatever is wrong":   {vmi(v1.Running, isFalse("Synchronized", "X")), false},
	} {
		s := plan.Seen{VM: vm(v1.RunStrategyAlways), VMI: tc.vmi, Config: config.From(nil)}
		s.VM.Generation, s.VM.Spec.Template.Spec.Subdomain = 2, "mended"
		stop := false
		for _, a := range plan.For(epoch, s).Actions {
			_, is := a.(plan.StopVMI)
			stop = stop || is
		}
		if stop != tc.stop {
			t.Errorf("%s: stopped: %t, want %t", name, stop, tc.stop)
		}
	}
}

func TestAHaltedVMIsHealthy(t *testing.T) {
	p := plan.For(epoch, plan.Seen{VM: vm(v1.RunStrategyHalted), Config: config.From(nil)})
	if len(p.Actions) != 0 || len(p.Status.Conditions) != 0 || p.Status.ObservedGeneration != 1 {
		t.Errorf("got %+v", p)
	}
}

// A guest that a person has paused is what was asked for, however long it lasts.
func TestAPausedVMIsHealthy(t *testing.T) {
	paused := v1.VirtualMachineInstanceCondition{Type: v1.VirtualMachineInstancePaused, Status: k8sv1.ConditionTrue, Reason: "PausedByUser"}
	s := plan.Seen{VM: vm(v1.RunStrategyAlways), VMI: vmi(v1.Running, isFalse("Ready", "ReadinessGatesNotReady"), paused), Config: config.From(nil)}
	p := plan.For(epoch.Add(24*time.Hour), s)
	if find(p.Status, "Ready") != nil || find(p.Status, plan.Stalled) != nil || find(p.Status, "Paused") == nil || !p.Recheck.IsZero() {
		t.Errorf("got %+v", p)
	}
	s.VMI.Status.Conditions[1].Reason = "PausedIOError"
	p = plan.For(epoch.Add(24*time.Hour), s)
	if find(p.Status, "Ready") == nil || find(p.Status, plan.Stalled) == nil {
		t.Errorf("paused by an error of its disk: got %+v", p.Status.Conditions)
	}
}

// Run strategy Once has one start, so that one that failed is the end of it.
func TestTheOneStartThatFailed(t *testing.T) {
	s := plan.Seen{VM: vm(v1.RunStrategyOnce), VMI: vmi(v1.Failed, isFalse("Synchronized", "SyncFailed")), Config: config.From(nil)}
	s.VMI.Status.Conditions[0].Message = "there is no such disk"
	for range 2 { // the first round records the failure
		s.VM.Status = plan.For(epoch, s).Status
	}
	if c := find(s.VM.Status, plan.Stalled); c == nil || c.Message != "there is no such disk" {
		t.Errorf("got %+v", s.VM.Status)
	}
	s.VM.DeletionTimestamp = &metav1.Time{Time: epoch}
	if c := find(plan.For(epoch, s).Status, plan.Stalled); c != nil {
		t.Errorf("of a VM that is being deleted: got %+v", c)
	}
}

func TestDeadlinesEndInStalled(t *testing.T) {
	for name, tc := range map[string]struct {
		vmi    *v1.VirtualMachineInstance
		before time.Duration // since epoch: not yet stalled
		reason string
	}{
		"no node fits":    {vmi(v1.Scheduling, isFalse("PodScheduled", "Unschedulable")), 2*time.Minute - time.Second, "Unschedulable"},
		"no image":        {vmi(v1.Scheduling, isFalse("Synchronized", "ErrImagePull")), 2*time.Minute - time.Second, "ErrImagePull"},
		"agent's trouble": {vmi(v1.Running, isFalse("Synchronized", "Synchronizing with the Domain failed.")), 2*time.Minute - time.Second, "SyncFailed"},
		"isn't ready":     {vmi(v1.Running, isFalse("Ready", "ContainersNotReady")), 10*time.Minute - time.Second, "NotReady"},
		"just doesn't":    {vmi(v1.Scheduled), 10*time.Minute - time.Second, "StartTimeout"},
	} {
		s := plan.Seen{VM: vm(v1.RunStrategyAlways), VMI: tc.vmi, Config: config.From(nil)}
		p := plan.For(epoch.Add(tc.before), s)
		if c := find(p.Status, plan.Stalled); c != nil || !p.Recheck.Equal(epoch.Add(tc.before+time.Second)) {
			t.Errorf("%s, before the deadline: got %+v and a recheck at %v", name, c, p.Recheck)
		}
		c := find(plan.For(p.Recheck, s).Status, plan.Stalled)
		if c == nil || c.Reason != tc.reason {
			t.Errorf("%s, after the deadline: got %+v, want reason %s", name, c, tc.reason)
		}
	}
}

func draw(t *rapid.T) plan.Seen {
	strategies := []v1.VirtualMachineRunStrategy{v1.RunStrategyAlways, v1.RunStrategyHalted, v1.RunStrategyManual, v1.RunStrategyRerunOnFailure, v1.RunStrategyOnce}
	s := plan.Seen{VM: vm(rapid.SampledFrom(strategies).Draw(t, "strategy")), Config: config.From(nil)}
	if rapid.Bool().Draw(t, "labelled") {
		s.VM.Spec.Template.ObjectMeta.Labels = map[string]string{"color": "green"}
	}
	s.VM.Generation = rapid.Int64Range(1, 3).Draw(t, "generation")
	s.VM.Status.ObservedGeneration = rapid.Int64Range(0, s.VM.Generation).Draw(t, "observed")
	s.VM.Status.RunStrategy = rapid.SampledFrom(strategies).Draw(t, "last strategy")
	uid := rapid.SampledFrom([]types.UID{"vmi", "other"})
	for range rapid.IntRange(0, 2).Draw(t, "requests") {
		r := v1.VirtualMachineStateChangeRequest{Action: v1.StartRequest}
		if rapid.Bool().Draw(t, "stop") {
			u := uid.Draw(t, "of")
			r = v1.VirtualMachineStateChangeRequest{Action: v1.StopRequest, UID: &u}
		}
		s.VM.Status.StateChangeRequests = append(s.VM.Status.StateChangeRequests, r)
	}
	if rapid.Bool().Draw(t, "failed before") {
		s.VM.Status.StartFailure = &v1.VirtualMachineStartFailure{
			ConsecutiveFailCount: rapid.IntRange(1, 20).Draw(t, "failures"), LastFailedVMIUID: uid.Draw(t, "failed"),
			RetryAfterTimestamp: &metav1.Time{Time: epoch.Add(time.Minute)},
		}
	}
	if rapid.Bool().Draw(t, "overridden") {
		o := override.Override{Run: rapid.Bool().Draw(t, "to run"), Reason: "test"}
		o.Until = epoch.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "hours left")) * time.Hour)
		s.VM.Annotations = map[string]string{names.RunOverride: o.Annotation()}
		s.OverrideIsOurs = rapid.Bool().Draw(t, "ours")
	}
	if rapid.Bool().Draw(t, "deleting") {
		s.VM.DeletionTimestamp = &metav1.Time{Time: epoch}
		s.VM.Finalizers = []string{v1.VirtualMachineControllerFinalizer}
	}
	if rapid.Bool().Draw(t, "has VMI") {
		s.VMI = vmi(rapid.SampledFrom([]v1.VirtualMachineInstancePhase{"", v1.Pending, v1.Scheduling, v1.Scheduled, v1.Running, v1.Succeeded, v1.Failed}).Draw(t, "phase"))
		s.VMI.Annotations[v1.VirtualMachineGenerationAnnotation] = strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "made from"))
	}
	return s
}

// happen does to a model what a plan asks, as the cluster would have done in the end.
func happen(s plan.Seen, p plan.Plan) plan.Seen {
	s.VM = s.VM.DeepCopy()
	requests := s.VM.Status.StateChangeRequests
	for _, a := range p.Actions {
		switch a := a.(type) {
		case plan.HoldVM:
			s.VM.Finalizers = []string{v1.VirtualMachineControllerFinalizer}
		case plan.ReleaseVM:
			s.VM.Finalizers = nil
		case plan.StartVMI:
			s.VMI = a.VMI.DeepCopy()
			s.VMI.UID = "made"
		case plan.StopVMI:
			s.VMI = nil
		case plan.RelabelVMI:
			s.VMI = s.VMI.DeepCopy()
			s.VMI.Labels, s.VMI.Annotations = changed(s.VMI.Labels, a.Labels), changed(s.VMI.Annotations, a.Annotations)
		case plan.DropOverride:
			s.VM.Annotations = nil
		case plan.SetRequests:
			requests = a.Requests
		}
	}
	s.VM.Status = p.Status
	s.VM.Status.StateChangeRequests = requests
	return s
}

func changed(have map[string]string, by mirror.Change) map[string]string {
	out := map[string]string{}
	maps.Copy(out, have)
	for k, v := range by {
		if v == nil {
			delete(out, k)
			continue
		}
		out[k] = *v
	}
	return out
}

func TestPlansSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		before := plan.Seen{VM: s.VM.DeepCopy(), VMI: s.VMI.DeepCopy(), Config: s.Config, OverrideIsOurs: s.OverrideIsOurs}
		p := plan.For(epoch, s)
		if diff := cmp.Diff(before, s, cmp.AllowUnexported(config.Config{})); diff != "" {
			t.Fatalf("what was seen was changed:\n%s", diff)
		}
		if diff := cmp.Diff(p, plan.For(epoch, s)); diff != "" {
			t.Fatalf("planned twice:\n%s", diff)
		}
		now := epoch
		for range 10 {
			s = happen(s, p)
			if !p.Recheck.IsZero() {
				now = p.Recheck
			}
			p = plan.For(now, s)
		}
		if len(p.Actions) != 0 {
			t.Fatalf("after ten rounds: %v", p.Actions)
		}
		s.VM = override.Effective(now, s.VM)
		settled(t, s)
	})
}

// settled checks that there is a VMI exactly where the spec wants one.
func settled(t *rapid.T, s plan.Seen) {
	want := lifecycle.For(s.VM, s.VMI)
	if want.VMI == lifecycle.Present && s.VMI == nil || want.VMI == lifecycle.Absent && s.VMI != nil {
		t.Fatalf("wanted %+v, and the VMI is %v", want, s.VMI)
	}
	if s.VM.DeletionTimestamp != nil && len(s.VM.Finalizers) > 0 {
		t.Fatal("a deleted VM is held for ever")
	}
}
