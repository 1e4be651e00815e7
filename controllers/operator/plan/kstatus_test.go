package plan_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/operator/plan"
)

// judged is what kstatus, which knows nothing of a KubeVirt, makes of one.
func judged(t *testing.T, kv *v1.KubeVirt) *status.Result {
	t.Helper()
	o, err := runtime.DefaultUnstructuredConverter.ToUnstructured(kv)
	if err != nil {
		t.Fatal(err)
	}
	r, err := status.Compute(&unstructured.Unstructured{Object: o})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A Git tool that waits for an install knows from kstatus alone where it is: every row of the contract has its verdict.
func TestKStatusJudgesEveryRow(t *testing.T) {
	for name, tc := range rollOuts {
		want := status.InProgressStatus
		switch {
		case tc.seen.KubeVirt.DeletionTimestamp != nil:
			want = status.TerminatingStatus
		case strings.Contains(tc.row, "ComponentsRefused"):
			want = status.FailedStatus
		case strings.Contains(tc.row, "AllComponentsReady"):
			want = status.CurrentStatus
		case strings.Contains(tc.row, "DeploymentFailed"), strings.Contains(tc.row, "ExistingDeployment"):
			want = status.FailedStatus
		}
		kv := tc.seen.KubeVirt.DeepCopy()
		kv.Status = plan.For(now, tc.seen).Status
		if got := judged(t, kv); got.Status != want {
			t.Errorf("%s: got %s (%s), want %s", name, got.Status, got.Message, want)
		}
	}
}

// Between a commit and the round that looks at it nothing is said to be as it should be.
func TestKStatusWaitsForTheRoundThatSeesACommit(t *testing.T) {
	kv := kubevirt()
	kv.Status = plan.For(now, seen(kv)).Status
	kv.Generation++
	if got := judged(t, kv); got.Status != status.InProgressStatus {
		t.Errorf("got %s", got.Status)
	}
	kv.Status = plan.For(now, seen(kv)).Status
	if got := judged(t, kv); got.Status != status.CurrentStatus {
		t.Errorf("once it has looked: got %s, %s", got.Status, got.Message)
	}
}

// A removal that waits for workloads, and one that goes on, tell apart why Ready is False.
func TestARemovalSaysWhetherItGoesOn(t *testing.T) {
	some := plan.Workloads{VMs: 1, Example: "demo/web"}
	for why, s := range map[string]plan.Seen{
		"Stalled":     {KubeVirt: kubevirt(deployed("t"), deleted), Workloads: some},
		"Reconciling": {KubeVirt: kubevirt(deployed("t"), deleted)},
	} {
		kv := s.KubeVirt
		kv.Status = plan.For(now, s).Status
		if got := judged(t, kv); got.Status != status.TerminatingStatus {
			t.Errorf("%s: got %s", why, got.Status)
		}
		if got := signs(kv.Status.Conditions); got != why+"=True Ready=False" {
			t.Errorf("%s: got %s", why, got)
		}
	}
}

// signs are the conditions that kstatus reads.
func signs(conditions []v1.KubeVirtCondition) string {
	var all []string
	for _, c := range conditions {
		switch c.Type {
		case "Ready", "Reconciling", "Stalled":
			all = append(all, string(c.Type)+"="+string(c.Status))
		}
	}
	return strings.Join(all, " ")
}

// Ready keeps its time while an install stays as it is, so that a wait for it ends at once.
func TestReadyKeepsItsTime(t *testing.T) {
	kv := kubevirt()
	kv.Status = plan.For(now, seen(kv)).Status
	again := plan.For(now.Add(plan.Deadline), seen(kv)).Status
	for _, c := range again.Conditions {
		if c.Type == "Ready" && !c.LastTransitionTime.Equal(&metav1.Time{Time: now}) {
			t.Errorf("got %v, want %v", c.LastTransitionTime, now)
		}
	}
	if got := signs(again.Conditions); got != "Ready=True" {
		t.Errorf("got %q", got)
	}
}
