package plan_test

import (
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/vmi/plan"
)

// handedOver is a VMI that its node agent has called Running, with its launcher Pod.
func handedOver(changes ...func(*plan.Seen)) plan.Seen {
	s := plan.Seen{VMI: &v1.VirtualMachineInstance{}, Pod: &k8sv1.Pod{}, Node: &k8sv1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}}
	s.VMI.Name, s.VMI.Finalizers, s.VMI.Labels = "web", []string{v1.VirtualMachineInstanceFinalizer}, map[string]string{v1.NodeNameLabel: "node-a"}
	s.VMI.Status.Phase, s.VMI.Status.NodeName = v1.Running, "node-a"
	s.Pod.Spec.NodeName, s.Pod.Status.Phase = "node-a", k8sv1.PodRunning
	s.Pod.Status.ContainerStatuses = []k8sv1.ContainerStatus{{Name: "compute", State: containers[1]}}
	s.Pod.Status.Conditions = []k8sv1.PodCondition{{Type: k8sv1.PodReady, Status: k8sv1.ConditionTrue}}
	for _, c := range changes {
		c(&s)
	}
	return s
}

// exited is a launcher whose end the kubelet has seen.
func exited(code int32, at time.Time) func(*plan.Seen) {
	return func(s *plan.Seen) {
		s.Pod.Status.Phase = k8sv1.PodFailed
		if code == 0 {
			s.Pod.Status.Phase = k8sv1.PodSucceeded
		}
		t := &k8sv1.ContainerStateTerminated{ExitCode: code, Message: "libvirtd ended"}
		if !at.IsZero() {
			t.FinishedAt = metav1.NewTime(at)
		}
		s.Pod.Status.ContainerStatuses[0].State = k8sv1.ContainerState{Terminated: t}
		s.Pod.Status.Conditions = append(s.Pod.Status.Conditions, k8sv1.PodCondition{Type: k8sv1.ContainersReady, Status: k8sv1.ConditionFalse, LastTransitionTime: metav1.NewTime(epoch)})
	}
}

func unreachable(s *plan.Seen) {
	s.Node.Spec.Taints = []k8sv1.Taint{{Key: k8sv1.TaintNodeUnreachable, Effect: k8sv1.TaintEffectNoExecute}}
}

func going(s *plan.Seen) { s.Pod.DeletionTimestamp = &metav1.Time{Time: epoch} }

// A launcher's end is proof that its guest has ended; nothing else is.
func TestAnEndThatNoNodeAgentTells(t *testing.T) {
	for name, tc := range map[string]struct {
		seen  plan.Seen
		now   time.Time
		phase v1.VirtualMachineInstancePhase // what is taken back; empty: nothing
	}{
		"the agent has a minute":        {handedOver(exited(3, epoch)), epoch.Add(59 * time.Second), ""},
		"it failed":                     {handedOver(exited(3, epoch)), epoch.Add(time.Minute), v1.Failed},
		"it ended well":                 {handedOver(exited(0, epoch)), epoch.Add(time.Minute), v1.Succeeded},
		"it ended well for its Pod":     {handedOver(exited(0, epoch), going), epoch.Add(time.Minute), v1.Failed},
		"found gone after a reboot":     {handedOver(exited(137, time.Time{})), epoch.Add(time.Minute), v1.Failed},
		"found gone just now":           {handedOver(exited(137, time.Time{})), epoch.Add(time.Second), ""},
		"its node is cut off, too":      {handedOver(exited(3, epoch), unreachable), epoch.Add(time.Hour), v1.Failed},
		"runs":                          {handedOver(), epoch.Add(time.Hour), ""},
		"runs on a node that's cut off": {handedOver(unreachable, going), epoch.Add(24 * time.Hour), ""},
		"only the Pod's phase says so":  {handedOver(func(s *plan.Seen) { s.Pod.Status.Phase = k8sv1.PodFailed }), epoch.Add(time.Hour), ""},
		"a cache has lost the Pod":      {handedOver(func(s *plan.Seen) { s.Pod = nil }), epoch.Add(time.Hour), ""},
		"the Pod is gone":               {handedOver(func(s *plan.Seen) { s.Pod, s.PodGone = nil, true }), epoch, v1.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.For(tc.now, tc.seen)
			if p.Status.Phase != tc.phase || p.TakeBack != (tc.phase != "") || (len(p.Reports) == 1) != p.TakeBack {
				t.Errorf("got phase %q, taken back: %t, reports %v; want %q", p.Status.Phase, p.TakeBack, p.Reports, tc.phase)
			}
			if waits := tc.seen.Pod != nil && tc.seen.Pod.Status.ContainerStatuses[0].State.Terminated != nil && tc.phase == ""; waits == p.Recheck.IsZero() {
				t.Errorf("looks again at %v", p.Recheck)
			}
		})
	}
	p := plan.For(epoch.Add(time.Hour), handedOver(exited(3, epoch)))
	for _, want := range []string{"exit code 3", "node-a", "libvirtd ended"} {
		if !strings.Contains(p.Reports[0].Message, want) {
			t.Errorf("%q doesn't say %q", p.Reports[0].Message, want)
		}
	}
}

func TestACutOffNodeIsNamedWithWhatReleasesTheVMI(t *testing.T) {
	ready := func(s plan.Seen) v1.VirtualMachineInstanceCondition {
		for _, c := range plan.For(epoch, s).Status.Conditions {
			if c.Type == v1.VirtualMachineInstanceReady {
				return c
			}
		}
		return v1.VirtualMachineInstanceCondition{}
	}
	for name, s := range map[string]plan.Seen{"just now": handedOver(unreachable), "its Pod is to be evicted": handedOver(unreachable, going)} {
		c := ready(s)
		if c.Status != k8sv1.ConditionFalse || c.Reason != plan.ReasonNodeUnreachable {
			t.Errorf("%s: Ready=%s %s", name, c.Status, c.Reason)
		}
		for _, want := range []string{"node-a", "delete Node node-a", "node.kubernetes.io/out-of-service"} {
			if !strings.Contains(c.Message, want) {
				t.Errorf("%s: %q doesn't say %q", name, c.Message, want)
			}
		}
	}
	if c := ready(handedOver()); c.Status != k8sv1.ConditionTrue {
		t.Errorf("on a node that is back: Ready=%s %s", c.Status, c.Reason)
	}
}
