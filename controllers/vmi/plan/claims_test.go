package plan_test

import (
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/vmi/plan"
)

// reading is a VMI that waits for its Pod and reads claim "data"; nil: it isn't there.
func reading(claim *k8sv1.PersistentVolumeClaim, source v1.VolumeSource) plan.Seen {
	s := plan.Seen{VMI: &v1.VirtualMachineInstance{}, Rendered: &k8sv1.Pod{}, PhaseOurs: true}
	s.VMI.Namespace, s.VMI.Name, s.VMI.Finalizers = "team", "web", []string{v1.VirtualMachineInstanceFinalizer}
	s.VMI.Spec.Volumes = []v1.Volume{{Name: "root", VolumeSource: v1.VolumeSource{EmptyDisk: &v1.EmptyDiskSource{}}}, {Name: "disk", VolumeSource: source}}
	s.Claims = map[string]*k8sv1.PersistentVolumeClaim{"data": claim}
	return s
}

func claimed() v1.VolumeSource {
	return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
		PersistentVolumeClaimVolumeSource: k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}
}

func inPhase(phase k8sv1.PersistentVolumeClaimPhase) *k8sv1.PersistentVolumeClaim {
	c := &k8sv1.PersistentVolumeClaim{}
	c.Name, c.Status.Phase = "data", phase
	c.Spec.Resources.Requests = k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse("1Gi")}
	return c
}

// A claim that isn't there is a condition that names it, never an end, and one that isn't bound is no obstacle: it may
// wait for the Pod.
func TestClaimsThatAreWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		claim        *k8sv1.PersistentVolumeClaim
		source       v1.VolumeSource
		reason, text string // empty: the Pod is made
	}{
		"missing":            {nil, claimed(), plan.ReasonClaimNotFound, "spec.volumes[1]: PersistentVolumeClaim team/data"},
		"missing DataVolume": {nil, v1.VolumeSource{DataVolume: &v1.DataVolumeSource{Name: "data"}}, plan.ReasonClaimNotFound, "spec.volumes[1].dataVolume.name: team/data"},
		"lost":               {inPhase(k8sv1.ClaimLost), claimed(), plan.ReasonClaimLost, "spec.volumes[1]"},
		"pending":            {inPhase(k8sv1.ClaimPending), claimed(), "", ""},
		"bound":              {inPhase(k8sv1.ClaimBound), claimed(), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.For(epoch, reading(tc.claim, tc.source))
			if made := has[plan.CreatePod](p); made != (tc.reason == "") {
				t.Errorf("Pod made: %v", made)
			}
			if tc.reason == "" {
				return
			}
			var said v1.VirtualMachineInstanceCondition
			for _, c := range p.Status.Conditions {
				if c.Type == v1.VirtualMachineInstanceSynchronized {
					said = c
				}
			}
			if p.Status.Phase != v1.Pending || said.Status != k8sv1.ConditionFalse || said.Reason != tc.reason || !strings.Contains(said.Message, tc.text) {
				t.Errorf("phase %s, condition %+v", p.Status.Phase, said)
			}
		})
	}
}

func TestAClaimThatAnotherWritesToIsWaitedFor(t *testing.T) {
	s := reading(inPhase(k8sv1.ClaimBound), claimed())
	s.Held = map[string]string{"data": "db"}
	p := plan.For(epoch, s)
	if has[plan.CreatePod](p) {
		t.Error("the Pod is made")
	}
	for _, c := range p.Status.Conditions {
		if c.Type == v1.VirtualMachineInstanceSynchronized && c.Reason == plan.ReasonClaimHeld && strings.Contains(c.Message, "team/data: VMI db") {
			return
		}
	}
	t.Errorf("not told: %+v", p.Status.Conditions)
}

// The launcher learns from the status how large a disk to make, and goes on knowing it when the claim is gone.
func TestStatusTellsOfClaims(t *testing.T) {
	s := reading(inPhase(k8sv1.ClaimPending), claimed())
	s.VMI.Status.Phase = v1.Scheduling
	st := plan.For(epoch, s).Status.VolumeStatus
	if len(st) != 1 || st[0].Name != "disk" || st[0].Phase != v1.VolumePending || st[0].Reason != plan.ReasonClaimNotReady || !strings.Contains(st[0].Message, "data") {
		t.Fatalf("of a pending claim: %+v", st)
	}
	s.Claims["data"] = inPhase(k8sv1.ClaimBound)
	s.Claims["data"].Status.Capacity = k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse("2Gi")}
	st = plan.For(epoch, s).Status.VolumeStatus
	if len(st) != 1 || st[0].Phase != "" || st[0].PersistentVolumeClaimInfo.Capacity.Storage().String() != "2Gi" ||
		*st[0].PersistentVolumeClaimInfo.VolumeMode != k8sv1.PersistentVolumeFilesystem || st[0].PersistentVolumeClaimInfo.FilesystemOverhead == nil {
		t.Fatalf("of a bound claim: %+v", st)
	}
	s.VMI.Status.VolumeStatus, s.Claims["data"] = st, nil
	if st = plan.For(epoch, s).Status.VolumeStatus; len(st) != 1 || st[0].PersistentVolumeClaimInfo == nil {
		t.Errorf("of a claim that is gone: %+v", st)
	}
}

// A claim that a DataVolume makes is used once it is filled, or where the VM's Pod is what the DataVolume waits for.
func TestDataVolumesThatAreWaitedFor(t *testing.T) {
	for phase, want := range map[string]string{
		"": plan.ReasonImporting, "ImportInProgress": plan.ReasonImporting, "WaitForFirstConsumer": plan.ReasonImporting,
		strings.Repeat("x", 4096): plan.ReasonImporting, "Failed": plan.ReasonImportFailed, "Succeeded": "", "PendingPopulation": "",
	} {
		s := reading(inPhase(k8sv1.ClaimBound), claimed())
		s.Imports = map[string]string{"data": phase}
		p := plan.For(epoch, s)
		var said v1.VirtualMachineInstanceCondition
		for _, c := range p.Status.Conditions {
			if c.Type == v1.VirtualMachineInstanceSynchronized {
				said = c
			}
		}
		waits := want != ""
		if has[plan.CreatePod](p) == waits || p.Recheck.IsZero() == waits || said.Reason != want {
			t.Errorf("%.20q: plan %v, recheck %v, condition %+v", phase, p.Actions, p.Recheck, said)
		}
		if waits && (!strings.HasPrefix(said.Message, "spec.volumes[1]: DataVolume team/data") || len(said.Message) > 200) {
			t.Errorf("%.20q: message %q", phase, said.Message)
		}
	}
}
