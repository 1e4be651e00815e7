package plan

import (
	"fmt"
	"slices"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/exit"
	"virtstack.io/virtstack/machine/lifecycle"
)

// unsaid waits for the node agent to say how the guest of an ended launcher ended, and says it in its place if it
// doesn't. That is safe: the kubelet has seen the launcher's end, and QEMU doesn't outlive it.
func unsaid(now time.Time, s Seen, last *k8sv1.ContainerStateTerminated) Plan {
	if at := endedAt(s.Pod, last).Add(agentAfter); now.Before(at) {
		return Plan{Status: status(now, s, s.VMI.Status.Phase), Recheck: at}
	}
	if last.ExitCode == 0 && lifecycle.PodTaken(s.VMI, s.Pod) {
		return podLost(now, s)
	}
	phase := v1.Succeeded
	if last.ExitCode != exit.Done {
		phase = v1.Failed
	}
	message := fmt.Sprintf("the launcher ended with exit code %d, and virt-handler of node %s hasn't said how its guest did", last.ExitCode, nodeName(s))
	if how := exit.Of(last); how.Message != "" {
		message += ": " + how.Message
	}
	return over(now, s, phase, Report{ReasonLauncherEnded, message})
}

// lastState returns how the launcher ended by the kubelet's word; nil while it may run. A Pod's phase alone is no proof:
// others write it too.
func lastState(pod *k8sv1.Pod) *k8sv1.ContainerStateTerminated {
	c := computeStatus(pod)
	if c == nil || !Finished(pod) {
		return nil
	}
	return c.State.Terminated
}

// endedAt returns when a launcher ended; a kubelet that found it gone, after a reboot, knows no more than when it was no
// longer ready.
func endedAt(pod *k8sv1.Pod, last *k8sv1.ContainerStateTerminated) time.Time {
	if !last.FinishedAt.IsZero() {
		return last.FinishedAt.Time
	}
	if c := podCondition(pod, k8sv1.ContainersReady); c != nil {
		return c.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// Unreachable reports whether the control plane has lost a node; its guests may go on.
func Unreachable(node *k8sv1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Spec.Taints, func(t k8sv1.Taint) bool { return t.Key == k8sv1.TaintNodeUnreachable })
}

// releasedBy says what frees a VMI whose node is cut off. A second guest is never started before: the first may run.
func releasedBy(node string) string {
	return fmt.Sprintf("node %s can't be reached, and its guest may run on: it is kept until the node is back; if the node is "+
		"surely off, delete Node %[1]s or taint it %s=:NoExecute, and the guest is started elsewhere", node, k8sv1.TaintNodeOutOfService)
}
