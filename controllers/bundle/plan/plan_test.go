package plan_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
)

var (
	now    = time.Date(2026, 12, 2, 8, 0, 0, 0, time.UTC)
	one    = v1alpha1.ResourceRef{ID: "ns_one__ConfigMap", Version: "v1"}
	two    = v1alpha1.ResourceRef{ID: "ns_two__ConfigMap", Version: "v1"}
	vm     = v1alpha1.ResourceRef{ID: "ns_web_kubevirt.io_VirtualMachine", Version: "v1"}
	broken = plan.Failure{Reason: plan.FetchFailed, Message: "no answer"}
)

type change = func(*v1alpha1.Bundle)

func bundle(changes ...change) *v1alpha1.Bundle {
	b := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Generation: 2, Finalizers: []string{v1alpha1.BundleFinalizer}}}
	b.Spec.Prune = &v1alpha1.BundlePrune{Enabled: true}
	for _, c := range changes {
		c(b)
	}
	return b
}

func applied(revision string, refs ...v1alpha1.ResourceRef) change {
	return func(b *v1alpha1.Bundle) {
		b.Status.LastAppliedRevision, b.Status.LastAttemptedRevision = revision, revision
		b.Status.Inventory = &v1alpha1.ResourceInventory{Entries: refs}
	}
}

func since(kind string, status metav1.ConditionStatus, reason string, ago time.Duration) change {
	return func(b *v1alpha1.Bundle) {
		b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		})
	}
}

func deleted(ago time.Duration) change {
	return func(b *v1alpha1.Bundle) { b.DeletionTimestamp = &metav1.Time{Time: now.Add(-ago)} }
}

func keepVMs(b *v1alpha1.Bundle) { b.Spec.Prune.VMs = v1alpha1.PruneKeep }
func noPrune(b *v1alpha1.Bundle) { b.Spec.Prune = nil }

// shown is one line: actions, conditions, applied revision, inventory, and when it is looked at again.
func shown(p plan.Plan) string {
	var s []string
	for _, a := range p.Actions {
		s = append(s, a.String())
	}
	for _, c := range p.Status.Conditions {
		s = append(s, c.Type+"="+string(c.Status)+" "+c.Reason)
	}
	s = append(s, "applied="+p.Status.LastAppliedRevision)
	if p.Status.Inventory != nil {
		var ids []string
		for _, e := range p.Status.Inventory.Entries {
			ids = append(ids, e.ID)
		}
		s = append(s, "has "+strings.Join(ids, " "))
	}
	if !p.Recheck.IsZero() {
		s = append(s, "again in "+p.Recheck.Sub(now).String())
	}
	return strings.Join(s, "; ")
}

type refs = []v1alpha1.ResourceRef

const progress, waiting = "Ready=Unknown Progressing; Reconciling=True Progressing", "Ready=Unknown WaitingForHealth; Reconciling=True WaitingForHealth"

var rounds = map[string]struct {
	seen plan.Seen
	want string
}{
	"first": {
		plan.Seen{Bundle: bundle(func(b *v1alpha1.Bundle) { b.Finalizers = nil })}, "adding the finalizer; " + progress + "; applied=; again in 1ms",
	},
	"what is applied is written down first": {
		plan.Seen{Bundle: bundle(applied("r1", one)), Revision: "r2", Wanted: refs{two}, Changes: []string{"ConfigMap ns/two"}},
		progress + "; applied=r1; has ns_one__ConfigMap ns_two__ConfigMap; again in 1ms",
	},
	"changes": {
		plan.Seen{Bundle: bundle(applied("r1", one, two)), Revision: "r2", Wanted: refs{two}, Changes: []string{"ConfigMap ns/two"}},
		"applying r2: ConfigMap ns/two; " + waiting + "; applied=r2; has ns_one__ConfigMap ns_two__ConfigMap; again in 500ms",
	},
	"not healthy yet": {
		plan.Seen{Bundle: bundle(applied("r2", one), since("Ready", "Unknown", "", 20*time.Second)), Revision: "r2", Wanted: refs{one}, Waiting: "it"},
		waiting + "; applied=r2; has ns_one__ConfigMap; again in 5s",
	},
	"not healthy in time": {
		plan.Seen{Bundle: bundle(applied("r2", one), since("Ready", "Unknown", "", 6*time.Minute)), Revision: "r2", Wanted: refs{one}, Waiting: "it"},
		"Ready=False HealthCheckFailed; Stalled=True HealthCheckFailed; applied=r2; has ns_one__ConfigMap; again in 5s",
	},
	"a new revision has its own time": {
		plan.Seen{Bundle: bundle(applied("r1", one), since("Ready", "Unknown", "", 6*time.Minute)), Revision: "r2", Wanted: refs{one}, Waiting: "it"},
		waiting + "; applied=r2; has ns_one__ConfigMap; again in 30s",
	},
	"leftovers go last": {
		plan.Seen{Bundle: bundle(applied("r2", one, two)), Revision: "r2", Wanted: refs{one}, Left: refs{two}},
		"removing what is not in r2: ns_two__ConfigMap; " + progress + "; applied=r2; has ns_one__ConfigMap ns_two__ConfigMap; again in 1s",
	},
	"but for a machine whose disk another waits for": {
		plan.Seen{Bundle: bundle(applied("r2", one, two, vm)), Revision: "r2", Wanted: refs{one}, Waiting: "it", Failed: true, Left: refs{two, vm}, InTheWay: refs{vm}},
		"removing what is not in r2: ns_web_kubevirt.io_VirtualMachine; " + progress + "; applied=r2; has ns_one__ConfigMap ns_two__ConfigMap ns_web_kubevirt.io_VirtualMachine; again in 1s",
	},
	"and that one not if it is kept": {
		plan.Seen{Bundle: bundle(applied("r2", one, vm), keepVMs), Revision: "r2", Wanted: refs{one}, Waiting: "it", Left: refs{vm}, InTheWay: refs{vm}},
		waiting + "; applied=r2; has ns_one__ConfigMap ns_web_kubevirt.io_VirtualMachine; again in 1s",
	},
	"or protected": {
		plan.Seen{Bundle: bundle(applied("r2", one, vm)), Revision: "r2", Wanted: refs{one}, Waiting: "it", Left: refs{vm}, Protected: refs{vm}, InTheWay: refs{vm}},
		waiting + "; applied=r2; has ns_one__ConfigMap ns_web_kubevirt.io_VirtualMachine; again in 1s",
	},
	"one that doesn't go in time is waited for no longer": {
		plan.Seen{Bundle: bundle(applied("r2", one, vm), since("Ready", "Unknown", "", 6*time.Minute)), Revision: "r2", Wanted: refs{one}, Waiting: "it", Left: refs{vm}, InTheWay: refs{vm}},
		"Ready=False HealthCheckFailed; Stalled=True HealthCheckFailed; applied=r2; has ns_one__ConfigMap ns_web_kubevirt.io_VirtualMachine; again in 5s",
	},
	"a leftover that stays": {
		plan.Seen{Bundle: bundle(applied("r2", one, two), since("Ready", "Unknown", "", 6*time.Minute)), Revision: "r2", Wanted: refs{one}, Left: refs{two}},
		"Ready=False PruneFailed; Stalled=True PruneFailed; applied=r2; has ns_one__ConfigMap ns_two__ConfigMap; again in 5s",
	},
	"a leftover VM that is kept": {
		plan.Seen{Bundle: bundle(applied("r2", one, vm), keepVMs), Revision: "r2", Wanted: refs{one}, Left: refs{vm}},
		"Ready=True ReconciliationSucceeded; applied=r2; has ns_one__ConfigMap; again in 5m0s",
	},
	"done": {
		plan.Seen{Bundle: bundle(applied("r2", one)), Revision: "r2", Wanted: refs{one}},
		"Ready=True ReconciliationSucceeded; applied=r2; has ns_one__ConfigMap; again in 5m0s",
	},
	"a failure leaves what was applied": {
		plan.Seen{Bundle: bundle(applied("r1", one)), Failure: &broken},
		"Ready=False FetchFailed; Reconciling=True Progressing; applied=r1; has ns_one__ConfigMap; again in 5s",
	},
	"tried less and less often": {
		plan.Seen{Bundle: bundle(applied("r1", one), since("Ready", "False", plan.FetchFailed, 2*time.Minute)), Failure: &broken},
		"Ready=False FetchFailed; Reconciling=True Progressing; applied=r1; has ns_one__ConfigMap; again in 1m0s",
	},
	"a dependency is waited for as long as it takes": {
		plan.Seen{Bundle: bundle(applied("r1", one), since("Ready", "False", plan.DependencyNotReady, time.Hour)), Failure: &plan.Failure{Reason: plan.DependencyNotReady}},
		"Ready=False DependencyNotReady; Reconciling=True DependencyNotReady; applied=r1; has ns_one__ConfigMap; again in 5m0s",
	},
	"a failure that lasts": {
		plan.Seen{Bundle: bundle(applied("r1", one), since("Ready", "False", plan.FetchFailed, time.Hour)), Failure: &broken},
		"Ready=False FetchFailed; Stalled=True FetchFailed; applied=r1; has ns_one__ConfigMap; again in 5m0s",
	},
	"a commit that can't be built": {
		plan.Seen{Bundle: bundle(applied("r1", one)), Revision: "r2", Failure: &plan.Failure{Reason: plan.BuildFailed, Message: "x", Final: true}},
		"Ready=False BuildFailed; Stalled=True BuildFailed; applied=r1; has ns_one__ConfigMap; again in 5s",
	},
	"deleted": {
		plan.Seen{Bundle: bundle(applied("r1", one), deleted(0)), Left: refs{one}},
		"removing all: ns_one__ConfigMap; Ready=False Removing; Reconciling=True Removing; applied=r1; has ns_one__ConfigMap; again in 1s",
	},
	"deleted, all gone":       {plan.Seen{Bundle: bundle(applied("r1", one), deleted(0))}, "dropping the finalizer; applied=r1; has ns_one__ConfigMap"},
	"deleted, no prune":       {plan.Seen{Bundle: bundle(applied("r1", one), deleted(0), noPrune), Left: refs{one}}, "dropping the finalizer; applied=r1; has ns_one__ConfigMap"},
	"deleted, and stays, too": {plan.Seen{Bundle: bundle(applied("r1", one), deleted(time.Hour)), Left: refs{one}}, "dropping the finalizer; applied=r1; has ns_one__ConfigMap"},
}

func TestRounds(t *testing.T) {
	for name, tc := range rounds {
		t.Run(name, func(t *testing.T) {
			if got := shown(plan.For(now, tc.seen)); got != tc.want {
				t.Errorf("\ngot  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// The same round an hour later changes nothing.
func TestDoneStaysDone(t *testing.T) {
	s := plan.Seen{Bundle: bundle(applied("r1", one)), Revision: "r1", Wanted: []v1alpha1.ResourceRef{one}}
	first := plan.For(now, s).Status
	s.Bundle.Status = first
	again := plan.For(now.Add(time.Hour), s).Status
	if len(first.Conditions) != 1 || first.Conditions[0] != again.Conditions[0] {
		t.Errorf("got %v, then %v", first.Conditions, again.Conditions)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	p := plan.For(now, plan.Seen{Bundle: bundle(), Failure: &plan.Failure{Reason: plan.BuildFailed, Message: strings.Repeat("ä", 100_000)}})
	if n := len(p.Status.Conditions[0].Message); n > 2100 {
		t.Errorf("a message of %d bytes", n)
	}
}
