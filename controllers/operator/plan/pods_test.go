package plan_test

import (
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/controllers/operator/plan"
)

func pod(name string, age time.Duration, waiting string) k8sv1.Pod {
	p := k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}}
	status := k8sv1.ContainerStatus{Name: "c", Image: "registry.example.test/virtstack:2"}
	if waiting != "" {
		status.State.Waiting = &k8sv1.ContainerStateWaiting{Reason: waiting, Message: "no such image"}
	}
	p.Status.ContainerStatuses = []k8sv1.ContainerStatus{status}
	return p
}

func TestWhatKeepsPodsFromRunning(t *testing.T) {
	unscheduled := pod("a", 0, "")
	unscheduled.Status.Conditions = []k8sv1.PodCondition{{Type: k8sv1.PodScheduled, Status: "False", Reason: "Unschedulable", Message: "0/3 nodes"}}
	const missing = "container c of image registry.example.test/virtstack:2: ImagePullBackOff: no such image"
	for name, tc := range map[string]struct {
		pods  []k8sv1.Pod
		want  string
		lasts bool
	}{
		"none":             {},
		"they run":         {pods: []k8sv1.Pod{pod("a", 0, "")}},
		"they are made":    {pods: []k8sv1.Pod{pod("a", 0, "ContainerCreating")}},
		"no such image":    {[]k8sv1.Pod{pod("a", 0, "ImagePullBackOff")}, "Pod kubevirt/a: " + missing, true},
		"may be a hiccup":  {[]k8sv1.Pod{pod("a", 0, "ErrImagePull")}, "Pod kubevirt/a: container c of image registry.example.test/virtstack:2: ErrImagePull: no such image", false},
		"the newest":       {[]k8sv1.Pod{pod("old", time.Hour, "CrashLoopBackOff"), pod("new", 0, "ImagePullBackOff")}, "Pod kubevirt/new: " + missing, true},
		"no node for them": {[]k8sv1.Pod{unscheduled}, "Pod kubevirt/a: Unschedulable: 0/3 nodes", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, lasts := plan.Trouble(tc.pods); got != tc.want || lasts != tc.lasts {
				t.Errorf("got %q, %t, want %q, %t", got, lasts, tc.want, tc.lasts)
			}
		})
	}
}
