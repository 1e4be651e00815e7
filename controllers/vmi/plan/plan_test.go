package plan_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/controllers/vmi/plan"
	"virtstack.io/virtstack/machine/lifecycle"
)

var epoch = time.Unix(1_700_000_000, 0)

var (
	phases     = []v1.VirtualMachineInstancePhase{v1.VmPhaseUnset, v1.Pending, v1.Scheduling, v1.Scheduled, v1.Running, v1.Succeeded, v1.Failed}
	containers = []k8sv1.ContainerState{
		{}, {Running: &k8sv1.ContainerStateRunning{}}, {Terminated: &k8sv1.ContainerStateTerminated{ExitCode: 3}},
		{Waiting: &k8sv1.ContainerStateWaiting{Reason: "ErrImagePull"}}, {Waiting: &k8sv1.ContainerStateWaiting{Reason: "ContainerCreating"}},
	}
)

func drawPod(t *rapid.T) *k8sv1.Pod {
	if rapid.Bool().Draw(t, "no pod") {
		return nil
	}
	pod := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "virt-launcher-web-x", UID: "pod", CreationTimestamp: metav1.NewTime(epoch)}}
	pod.Spec.NodeName = rapid.SampledFrom([]string{"", "node-1"}).Draw(t, "node")
	pod.Spec.Containers = []k8sv1.Container{{Name: "compute", Image: "launcher"}}
	pod.Status.Phase = rapid.SampledFrom([]k8sv1.PodPhase{k8sv1.PodPending, k8sv1.PodRunning, k8sv1.PodFailed, k8sv1.PodSucceeded}).Draw(t, "pod phase")
	pod.Status.ContainerStatuses = []k8sv1.ContainerStatus{{Name: "compute", State: rapid.SampledFrom(containers).Draw(t, "compute")}}
	if rapid.Bool().Draw(t, "unschedulable") {
		pod.Status.Conditions = []k8sv1.PodCondition{{Type: k8sv1.PodScheduled, Status: k8sv1.ConditionFalse, Reason: k8sv1.PodReasonUnschedulable}}
	}
	if rapid.Bool().Draw(t, "pod deleting") {
		pod.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	return pod
}

func draw(t *rapid.T) plan.Seen {
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "vmi", CreationTimestamp: metav1.NewTime(epoch)}}
	vmi.Status.Phase = rapid.SampledFrom(phases).Draw(t, "phase")
	if rapid.Bool().Draw(t, "held") {
		vmi.Finalizers = []string{v1.VirtualMachineInstanceFinalizer}
	}
	if rapid.Bool().Draw(t, "deleting") {
		vmi.DeletionTimestamp = &metav1.Time{Time: epoch}
	}
	s := plan.Seen{VMI: vmi, Pod: drawPod(t), Rendered: &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "virt-launcher-web-x"}}}
	s.PodGone = s.Pod == nil && rapid.Bool().Draw(t, "gone")
	agents := vmi.Status.Phase == v1.Running || vmi.Status.Phase == v1.Succeeded // only an agent says so
	s.PhaseOurs = vmi.Status.Phase == v1.VmPhaseUnset || !agents && rapid.Bool().Draw(t, "phase ours")
	if rapid.Bool().Draw(t, "cut off") {
		s.Node = &k8sv1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: k8sv1.NodeSpec{Taints: []k8sv1.Taint{{Key: k8sv1.TaintNodeUnreachable}}}}
	}
	if rapid.Bool().Draw(t, "can't be rendered") {
		s.Unrendered = errors.New("spec.volumes[0].hostDisk: not supported")
	}
	return s
}

func has[T plan.Action](p plan.Plan) bool {
	for _, a := range p.Actions {
		if _, ok := a.(T); ok {
			return true
		}
	}
	return false
}

// clone copies what a plan could change; errors are compared by their text.
func clone(s plan.Seen) plan.Seen {
	s.Node = s.Node.DeepCopy()
	s.VMI, s.Pod, s.Rendered = s.VMI.DeepCopy(), s.Pod.DeepCopy(), s.Rendered.DeepCopy()
	return s
}

func TestPlansHoldTheirLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, now := draw(t), epoch.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "seconds"))*time.Second)
		before := clone(s)
		p := plan.For(now, s)
		if diff := cmp.Diff(before, s, cmpopts.EquateErrors()); diff != "" {
			t.Fatalf("what was seen was changed:\n%s", diff)
		}
		if diff := cmp.Diff(p, plan.For(now, s)); diff != "" {
			t.Fatalf("planned twice:\n%s", diff)
		}
		laws(t, s, p)
	})
}

func laws(t *rapid.T, s plan.Seen, p plan.Plan) {
	handedOver := !s.PhaseOurs
	switch {
	case handedOver && p.Status.Phase != "" && !p.TakeBack:
		t.Fatalf("the phase is the node agent's, and %q is written", p.Status.Phase)
	case p.TakeBack && !(s.Pod == nil && s.PodGone) && !launcherEnded(s.Pod):
		t.Fatal("the phase is taken back while the launcher may run")
	case has[plan.ReleaseVMI](p) && !(s.Pod == nil && s.PodGone && s.VMI.DeletionTimestamp != nil):
		t.Fatal("a VMI is released that isn't deleted, or whose Pod may be there")
	case has[plan.CreatePod](p) && (plan.HadPod(s.VMI) || s.Pod != nil || s.VMI.DeletionTimestamp != nil || s.Unrendered != nil):
		t.Fatal("a second Pod is made, or one for a VMI that is going or can't have one")
	case has[plan.DeletePod](p) && s.VMI.DeletionTimestamp == nil && !lifecycle.Final(s.VMI):
		t.Fatal("the Pod of a live VMI is deleted")
	case lifecycle.Final(s.VMI) && p.Status.Phase != "" && p.Status.Phase != s.VMI.Status.Phase:
		t.Fatalf("a final phase becomes %s", p.Status.Phase)
	case p.Status.Phase == v1.Running || p.Status.Phase == v1.Succeeded && !lifecycle.Final(s.VMI) && !p.TakeBack:
		t.Fatalf("phase %s is only the node agent's to say", p.Status.Phase)
	}
}

// launcherEnded is the kubelet's word that a launcher has ended.
func launcherEnded(pod *k8sv1.Pod) bool {
	return pod != nil && (pod.Status.Phase == k8sv1.PodFailed || pod.Status.Phase == k8sv1.PodSucceeded) && pod.Status.ContainerStatuses[0].State.Terminated != nil
}

func TestHandingOver(t *testing.T) {
	s := plan.Seen{PhaseOurs: true, VMI: &v1.VirtualMachineInstance{}, Pod: &k8sv1.Pod{}}
	s.VMI.Name, s.VMI.Finalizers = "web", []string{v1.VirtualMachineInstanceFinalizer}
	s.Pod.Name, s.Pod.UID, s.Pod.Spec.NodeName, s.Pod.Status.Phase = "virt-launcher-web-x", "pod", "node-1", k8sv1.PodRunning
	s.Pod.Status.ContainerStatuses = []k8sv1.ContainerStatus{{Name: "compute", State: containers[1]}}
	guest := resource.MustParse("256Mi")
	s.VMI.Spec.Domain.Memory = &v1.Memory{Guest: &guest}
	s.VMI.Spec.Domain.Resources.Limits = k8sv1.ResourceList{k8sv1.ResourceMemory: resource.MustParse("1Gi")}
	p := plan.For(epoch, s)
	if m := p.Status.Memory; m == nil || m.GuestAtBoot == nil || m.GuestAtBoot.String() != "256Mi" {
		t.Errorf("memory %+v, want 256Mi at boot, not the limit", m)
	}
	if st := p.Status; st.Phase != v1.Scheduled || st.NodeName != "node-1" || st.ActivePods["pod"] != "node-1" || len(p.Actions) != 0 {
		t.Errorf("got %+v", p)
	}
	s.VMI.Status = p.Status
	var did []string
	for _, a := range plan.For(epoch, s).Actions {
		did = append(did, a.String())
	}
	want := []string{"opening the gate of Pod virt-launcher-web-x", "labelling VMI web with node node-1"}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("actions after it (-want +got):\n%s", diff)
	}
}
