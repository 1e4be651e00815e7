package lifecycle_test

import (
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/lifecycle"
)

func TestPodsThatAreTakenAway(t *testing.T) {
	deletion := &metav1.Time{Time: time.Unix(9, 0)}
	disrupted := func(s k8sv1.ConditionStatus) *k8sv1.Pod {
		return &k8sv1.Pod{Status: k8sv1.PodStatus{Conditions: []k8sv1.PodCondition{{Type: k8sv1.PodReady}, {Type: k8sv1.DisruptionTarget, Status: s}}}}
	}
	deleted := &k8sv1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deletion}}
	going := vmi(v1.Running)
	going.DeletionTimestamp = deletion
	for name, tc := range map[string]struct {
		vmi  *v1.VirtualMachineInstance
		pod  *k8sv1.Pod
		want bool
	}{
		"there":                    {vmi(v1.Running), &k8sv1.Pod{}, false},
		"not seen":                 {vmi(v1.Running), nil, false},
		"deleted":                  {vmi(v1.Running), deleted, true},
		"deleted with its VMI":     {going, deleted, false},
		"evicted by the kubelet":   {vmi(v1.Running), &k8sv1.Pod{Status: k8sv1.PodStatus{Reason: "Evicted"}}, true},
		"to be disrupted":          {vmi(v1.Running), disrupted(k8sv1.ConditionTrue), true},
		"no more to be disrupted":  {vmi(v1.Running), disrupted(k8sv1.ConditionFalse), false},
		"disrupted along with VMI": {going, disrupted(k8sv1.ConditionTrue), false},
	} {
		if got := lifecycle.PodTaken(tc.vmi, tc.pod); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
