package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// lasting are reasons for which a container doesn't run until somebody changes something.
var lasting = []string{
	"ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CrashLoopBackOff", "RunContainerError",
}

// Trouble says what keeps the Pods of a workload from running, "" for nothing that they tell of, and whether it will last.
// Of several the one is named that was made last: it is of the version that is rolled out.
func Trouble(pods []corev1.Pod) (why string, lasts bool) {
	pods = slices.Clone(pods)
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for i := range pods {
		if said, last := trouble(&pods[i]); said != "" {
			return fmt.Sprintf("Pod %s/%s: %s", pods[i].Namespace, pods[i].Name, said), last
		}
	}
	return "", false
}

func trouble(p *corev1.Pod) (string, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message, false
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := c.State.Waiting
		if w == nil || w.Reason == "" || w.Reason == "ContainerCreating" || w.Reason == "PodInitializing" {
			continue
		}
		return fmt.Sprintf("container %s of image %s: %s: %s", c.Name, c.Image, w.Reason, w.Message), slices.Contains(lasting, w.Reason)
	}
	return "", false
}
