package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/operator/plan"
)

var now = time.Date(2026, 12, 2, 8, 0, 0, 0, time.UTC)

func kubevirt(change ...func(*v1.KubeVirt)) *v1.KubeVirt {
	kv := &v1.KubeVirt{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt", Generation: 3, Finalizers: []string{plan.Finalizer}}}
	for _, c := range change {
		c(kv)
	}
	return kv
}

func deployed(id string) func(*v1.KubeVirt) {
	return func(kv *v1.KubeVirt) {
		kv.Status.ObservedDeploymentID, kv.Status.TargetDeploymentID = id, id
		kv.Status.Phase = v1.KubeVirtPhaseDeployed
	}
}

func available(kv *v1.KubeVirt) {
	kv.Status.Conditions = []v1.KubeVirtCondition{{Type: "Available", Status: "True", Reason: "AllComponentsReady"}}
}

func deleted(kv *v1.KubeVirt) { kv.DeletionTimestamp = &metav1.Time{Time: now} }

func progressing(since time.Time) func(*v1.KubeVirt) {
	return func(kv *v1.KubeVirt) {
		kv.Status.TargetDeploymentID = "t"
		kv.Status.Conditions = []v1.KubeVirtCondition{{Type: "Progressing", Status: "True", LastTransitionTime: metav1.NewTime(since)}}
	}
}

// seen is a round in which everything is as it should be.
func seen(kv *v1.KubeVirt, change ...func(*plan.Seen)) plan.Seen {
	s := plan.Seen{KubeVirt: kv, Certified: true, Recorded: true, Target: plan.Target{Version: "v1", ID: "t"}}
	for _, stage := range plan.Stages() {
		s.Stages = append(s.Stages, plan.StageSeen{Stage: stage})
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// upTo ends the list with a stage that is not ready.
func upTo(last plan.StageSeen) func(*plan.Seen) {
	return func(s *plan.Seen) {
		s.Stages = append(s.Stages[:last.Stage:last.Stage], last)
	}
}

// row is what the contract's table says: T, F or - for Created, Synchronized, Available, Progressing, Degraded.
func row(conditions []v1.KubeVirtCondition) string {
	var r strings.Builder
	for _, kind := range []v1.KubeVirtConditionType{"Created", "Synchronized", "Available", "Progressing", "Degraded"} {
		mark := "-"
		for _, c := range conditions {
			if c.Type == kind {
				mark = string(c.Status)[:1]
			}
		}
		r.WriteString(mark)
	}
	return r.String()
}

func reasons(conditions []v1.KubeVirtCondition) []string {
	var all []string
	for _, c := range conditions {
		if c.Type != "Created" {
			all = append(all, c.Reason)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

const deploying, updating, failed = "--FTF DeploymentInProgress", "--TTT UpdateInProgress", "-FFFT DeploymentFailed"

// kept is an install that stays as it is, since what is asked for now can't be brought about.
const kept = "TFTFT AllComponentsReady,ComponentsRefused"

var rollOuts = map[string]struct {
	seen  plan.Seen
	act   string
	row   string
	phase v1.KubeVirtPhase
}{
	"first": {seen(kubevirt(func(kv *v1.KubeVirt) { kv.Finalizers = nil })), "adding the finalizer", deploying, "Deploying"},
	"kinds are missing": {
		seen(kubevirt(), func(s *plan.Seen) { s.Stages = nil; s.Kinds = []string{"virtualmachines.kubevirt.io is missing"} }), "", deploying, "Deploying",
	},
	"no certificates": {seen(kubevirt(), func(s *plan.Seen) { s.Stages = nil; s.Certified = false }), "", deploying, "Deploying"},
	"not recorded":    {seen(kubevirt(), func(s *plan.Seen) { s.Stages = nil; s.Recorded = false }), "recording the inventory", deploying, "Deploying"},
	"a stage to apply": {
		seen(kubevirt(), upTo(plan.StageSeen{Stage: plan.NodeAgents, Changes: []string{"DaemonSet kubevirt/virt-handler"}})),
		"applying virt-handler: DaemonSet kubevirt/virt-handler", deploying, "Deploying",
	},
	"a stage to wait for": {
		seen(kubevirt(), upTo(plan.StageSeen{Stage: plan.API, Waiting: "Deployment virt-api: 0 of 1"})), "", deploying, "Deploying",
	},
	"all is written": {
		seen(kubevirt(), upTo(plan.StageSeen{Stage: plan.Registrations, Waiting: "APIService: not yet"})), "", "T-FTF DeploymentInProgress", "Deploying",
	},
	"ready": {seen(kubevirt()), "", "T-TFF AllComponentsReady", "Deployed"},
	"leftovers": {
		seen(kubevirt(), func(s *plan.Seen) { s.Orphans = []string{"Role kubevirt/old"} }), "pruning Role kubevirt/old", "T-FTF DeploymentInProgress", "Deploying",
	},
	"update": {
		seen(kubevirt(deployed("old")), upTo(plan.StageSeen{Stage: plan.Controllers, Waiting: "new Pod"})), "", updating, "Deployed",
	},
	"a component broke": {
		seen(kubevirt(deployed("t")), upTo(plan.StageSeen{Stage: plan.API, Waiting: "0 of 1"})), "", deploying, "Deployed",
	},
	"refused": {
		seen(kubevirt(), upTo(plan.StageSeen{Stage: plan.Configuration, Refused: "ClusterRole x: forbidden"})), "", failed, "Deploying",
	},
	"no answer in a first roll-out": {
		seen(kubevirt(), upTo(plan.StageSeen{Stage: plan.API, Unanswered: "timeout"})), "", deploying, "Deploying",
	},
	"no answer in an update": {
		seen(kubevirt(deployed("old")), upTo(plan.StageSeen{Stage: plan.API, Unanswered: "timeout"})), "", updating, "Deployed",
	},
	"no answer about what is ready": {
		seen(kubevirt(deployed("t"), available), upTo(plan.StageSeen{Stage: plan.API, Unanswered: "timeout"})), "", "TFTFF AllComponentsReady,Retrying", "Deployed",
	},
	"won't be ready": {
		seen(kubevirt(), upTo(plan.StageSeen{Stage: plan.NodeAgents, Waiting: "deadline", Failed: true})), "", failed, "Deploying",
	},
	"too long": {
		seen(kubevirt(progressing(now.Add(-plan.Deadline-time.Second))), upTo(plan.StageSeen{Stage: plan.NodeAgents, Waiting: "image"})), "", failed, "Deploying",
	},
	"not too long": {
		seen(kubevirt(progressing(now.Add(-plan.Deadline+time.Second))), upTo(plan.StageSeen{Stage: plan.NodeAgents, Waiting: "image"})), "", deploying, "Deploying",
	},
	"can't be rendered": {seen(kubevirt(), func(s *plan.Seen) { s.Build = errors.New("no image") }), "", failed, "Deploying"},
	"can't be rendered, what runs goes on": {
		seen(kubevirt(deployed("t"), available), func(s *plan.Seen) { s.Build = errors.New("no image") }), "", kept, "Deployed",
	},
	"a commit isn't taken": {seen(kubevirt(deployed("t")), func(s *plan.Seen) { s.Rejected = "c0ffee: no DaemonSet" }), "", kept, "Deployed"},
	"a commit isn't taken, and a component broke": {
		seen(kubevirt(deployed("t")), func(s *plan.Seen) { s.Rejected = "no DaemonSet" }, upTo(plan.StageSeen{Stage: plan.API, Waiting: "0 of 1"})), "", deploying, "Deployed",
	},
	"another product":    {seen(kubevirt(), func(s *plan.Seen) { s.Foreign = "Deployment other/virt-operator" }), "", failed, "Deploying"},
	"the wrong place":    {seen(kubevirt(func(kv *v1.KubeVirt) { kv.Namespace = "x" })), "", failed, "Deploying"},
	"the second of two":  {seen(kubevirt(), func(s *plan.Seen) { s.First = "kubevirt/first" }), "", "-F--- ExistingDeployment", ""},
	"second, being gone": {seen(kubevirt(deleted), func(s *plan.Seen) { s.First = "kubevirt/first" }), "dropping the finalizer", "-----", ""},
}

func TestRollOut(t *testing.T) {
	for name, tc := range rollOuts {
		t.Run(name, func(t *testing.T) {
			p := plan.For(now, tc.seen)
			if got := acts(p); got != tc.act {
				t.Errorf("actions: got %q, want %q", got, tc.act)
			}
			got := strings.TrimSpace(row(p.Status.Conditions) + " " + strings.Join(reasons(p.Status.Conditions), ","))
			if got != tc.row || p.Status.Phase != tc.phase {
				t.Errorf("got %q in phase %q, want %q in %q", got, p.Status.Phase, tc.row, tc.phase)
			}
			if tc.act != "dropping the finalizer" && (p.Recheck.IsZero() != (tc.act == "adding the finalizer")) {
				t.Errorf("looks again at %v", p.Recheck)
			}
		})
	}
}

func acts(p plan.Plan) string {
	var all []string
	for _, a := range p.Actions {
		all = append(all, a.String())
	}
	return strings.Join(all, "; ")
}

func TestObservedIsWhatRuns(t *testing.T) {
	waiting := plan.For(now, seen(kubevirt(deployed("old")), upTo(plan.StageSeen{Stage: plan.API, Waiting: "x"}))).Status
	if waiting.ObservedDeploymentID != "old" || waiting.TargetDeploymentID != "t" {
		t.Errorf("on the way: observed %q, target %q", waiting.ObservedDeploymentID, waiting.TargetDeploymentID)
	}
	done := plan.For(now, seen(kubevirt(deployed("old")))).Status
	if done.ObservedDeploymentID != "t" || done.ObservedKubeVirtVersion != "v1" || *done.ObservedGeneration != 3 {
		t.Errorf("there: observed %q %q, generation %d", done.ObservedDeploymentID, done.ObservedKubeVirtVersion, *done.ObservedGeneration)
	}
}

// What a KubeVirt asks for in vain is said as long as it does, whatever else goes on.
func TestIgnoredConfigurationIsACondition(t *testing.T) {
	for name, change := range map[string]func(*plan.Seen){"ready": func(*plan.Seen) {}, "waiting": upTo(plan.StageSeen{Waiting: "w"})} {
		s := seen(kubevirt(func(kv *v1.KubeVirt) { kv.Spec.ProductName = "shop" }), change)
		conditions := plan.For(now, s).Status.Conditions
		last := conditions[len(conditions)-1]
		if last.Type != plan.ConfigurationIgnored || last.Status != "True" || last.Message != "spec.productName has no effect in this version" {
			t.Errorf("%s: got %+v", name, last)
		}
		s.KubeVirt.Spec.ProductName = ""
		if found := plan.For(now, s).Status.Conditions; len(found) != len(conditions)-1 {
			t.Errorf("%s: got %+v once it's gone", name, found)
		}
	}
}

func TestRemoval(t *testing.T) {
	some := plan.Workloads{VMs: 2, VMIs: 1, Example: "demo/web"}
	remove := func(kv *v1.KubeVirt) { kv.Spec.UninstallStrategy = v1.KubeVirtUninstallStrategyRemoveWorkloads }
	removing := func(kv *v1.KubeVirt) { kv.Status.Phase = v1.KubeVirtPhaseDeleting }
	for name, tc := range map[string]struct {
		kv        *v1.KubeVirt
		workloads plan.Workloads
		left      map[plan.Stage][]string
		marked    []string
		act, row  string
		phase     v1.KubeVirtPhase
	}{
		"VMs are left":                 {kubevirt(deployed("t"), deleted), some, nil, nil, "", "-FTFT DeletionFailed", "Deployed"},
		"VMs are left, never deployed": {kubevirt(deleted), some, nil, nil, "", "-FFFT DeletionFailed", "Deploying"},
		"VMs go too": {
			kubevirt(deployed("t"), deleted, remove), some, nil, nil,
			"removing 2 VirtualMachines and 1 VirtualMachineInstances, for example demo/web", "--FFT DeletionInProgress", "Deleting",
		},
		"last stage first": {
			kubevirt(deployed("t"), deleted), plan.Workloads{}, map[plan.Stage][]string{plan.Configuration: {"Role a"}, plan.Registrations: {"APIService b"}}, nil,
			"removing API services and webhooks: APIService b", "--FFT DeletionInProgress", "Deleting",
		},
		"certificates when their controller has stopped": {kubevirt(deployed("t"), deleted), plan.Workloads{}, nil, nil, "", "--FFT DeletionInProgress", "Deleting"},
		"nodes keep no label": {
			kubevirt(deployed("t"), deleted, removing), plan.Workloads{}, nil, []string{"node-1"},
			"removing labels and annotations of nodes: node-1", "--FFT DeletionInProgress", "Deleting",
		},
		"all gone": {
			kubevirt(deployed("t"), deleted, removing), plan.Workloads{}, nil, nil,
			"removing certificates and inventory; dropping the finalizer", "--FFT DeletionInProgress", "Deleting",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan.For(now, plan.Seen{KubeVirt: tc.kv, Workloads: tc.workloads, Left: tc.left, Marked: tc.marked})
			if got := acts(p); got != tc.act {
				t.Errorf("actions: got %q, want %q", got, tc.act)
			}
			if got := row(p.Status.Conditions) + " " + strings.Join(reasons(p.Status.Conditions), ","); got != tc.row || p.Status.Phase != tc.phase {
				t.Errorf("got %q in phase %q, want %q in %q", got, p.Status.Phase, tc.row, tc.phase)
			}
		})
	}
	if why := plan.Blocked(kubevirt(), some); !strings.Contains(why, "demo/web") || !strings.Contains(why, "RemoveWorkloads") {
		t.Errorf("a blocked deletion says %q", why)
	}
}

// A flip moves the time of a condition, nothing else does.
func TestConditionTimesMoveWithStatus(t *testing.T) {
	first := plan.For(now, seen(kubevirt())).Status
	kv := kubevirt()
	kv.Status = first
	again := plan.For(now.Add(time.Hour), seen(kv)).Status
	if !slices.EqualFunc(first.Conditions, again.Conditions, func(a, b v1.KubeVirtCondition) bool { return a == b }) {
		t.Errorf("the same answer an hour later: %v, then %v", first.Conditions, again.Conditions)
	}
	broken := plan.For(now.Add(time.Hour), seen(kv, upTo(plan.StageSeen{Stage: plan.API, Waiting: "x"}))).Status
	for _, c := range broken.Conditions {
		if c.Type == "Available" && (c.Status != k8sv1.ConditionFalse || !c.LastTransitionTime.Time.Equal(now.Add(time.Hour))) {
			t.Errorf("after the flip: %v", c)
		}
	}
}

func TestStages(t *testing.T) {
	for _, tc := range []struct {
		kind, name string
		want       plan.Stage
	}{
		{"ClusterRole", "kubevirt-handler", plan.Configuration}, {"ValidatingAdmissionPolicy", "p", plan.Configuration},
		{"DaemonSet", "virt-handler", plan.NodeAgents}, {"Deployment", "virt-controller", plan.Controllers},
		{"Deployment", "virt-api", plan.API}, {"APIService", "v1", plan.Registrations},
		{"ValidatingWebhookConfiguration", "virt-api-validator", plan.Registrations},
	} {
		if got := plan.StageOf(tc.kind, tc.name); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.kind, tc.name, got, tc.want)
		}
	}
}

func TestAnIncompleteBundleIsNamed(t *testing.T) {
	all := []string{"DaemonSet virt-handler", "Deployment virt-controller", "Deployment virt-api"}
	if got := plan.Incomplete(all); got != "" {
		t.Errorf("of a whole bundle: %q", got)
	}
	if got := plan.Incomplete(all[:2]); !strings.Contains(got, "no Deployment virt-api among its 2 objects") {
		t.Errorf("of one without virt-api: %q", got)
	}
}

// A source that doesn't answer says nothing about what runs.
func TestASourceThatIsAway(t *testing.T) {
	away := func(s *plan.Seen) { s.Stages, s.Unanswered = nil, "no route to host" }
	p := plan.For(now, seen(kubevirt(deployed("t"), available), away))
	if got := row(p.Status.Conditions); got != "TFTFF" || len(p.Actions) > 0 {
		t.Errorf("of an install that was ready: %s, %v", got, p.Actions)
	}
	p = plan.For(now, seen(kubevirt(), away))
	if got := row(p.Status.Conditions); got != "--FTF" || !strings.Contains(p.Status.Conditions[0].Message, "no route to host") {
		t.Errorf("of a first roll-out: %s, %v", got, p.Status.Conditions)
	}
}
