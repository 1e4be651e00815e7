package plan_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	gitplan "virtstack.io/virtstack/gitops/plan"
)

func machines(names ...string) (all refs) {
	for _, n := range names {
		all = append(all, v1alpha1.ResourceRef{ID: "ns_" + n + "_kubevirt.io_VirtualMachine", Version: "v1"})
	}
	return all
}

// A revision that removes more machines than it may is not applied until enough of them are approved.
func TestMaxFraction(t *testing.T) {
	has := append(machines("a", "b", "c", "d"), one)
	for name, tc := range map[string]struct {
		most     string
		approved []string
		keep     bool
		wanted   refs
		waits    string // the list in the message, "": doesn't wait
	}{
		"no limit":               {"", nil, false, nil, ""},
		"as much as it may":      {"50%", nil, false, machines("a", "b"), ""},
		"more":                   {"25%", nil, false, machines("a", "b"), "[ns/c, ns/d]"},
		"none may go":            {"0%", nil, false, append(machines("a", "b", "c"), one), "[ns/d]"},
		"nothing goes":           {"0%", nil, false, append(machines("a", "b", "c", "d"), one), ""},
		"other objects are free": {"0%", nil, false, machines("a", "b", "c", "d"), ""},
		"new names are removals": {"50%", nil, false, machines("x-a", "x-b", "x-c", "x-d"), "[ns/a, ns/b, ns/c, ns/d]"},
		"approved":               {"0%", []string{"ns/c", "ns/d"}, false, machines("a", "b"), ""},
		"approved in part":       {"0%", []string{"ns/c"}, false, machines("a", "b"), "[ns/d]"},
		"all":                    {"99%", nil, false, nil, "[ns/a, ns/b, ns/c, ns/d]"},
		"kept anyway":            {"0%", nil, true, nil, ""},
	} {
		b := bundle(applied("r1", has...))
		b.Spec.Prune.MaxFraction, b.Spec.Prune.Approved = tc.most, tc.approved
		if tc.keep {
			keepVMs(b)
		}
		p := plan.For(now, plan.Seen{Bundle: b, Revision: "r2", Wanted: tc.wanted, Changes: []string{"x"}})
		c := p.Status.Conditions[0]
		if waits := c.Reason == plan.ApprovalNeeded; waits != (tc.waits != "") || waits != (len(p.Actions) == 0 && p.Status.LastAppliedRevision == "r1") || !strings.Contains(c.Message, tc.waits) {
			t.Errorf("%s: want waiting for %q, got %s", name, tc.waits, shown(p)+" "+c.Message)
		}
	}
}

// A list of names that is too long to be said is approved by a digest, which stands for these machines and no others.
func TestManyRemovalsAreApprovedByTheirDigest(t *testing.T) {
	var has []string
	for i := range 300 {
		has = append(has, fmt.Sprintf("machine-%03d", i))
	}
	waits := func(approved []string, left ...string) string {
		b := bundle(applied("r1", machines(has...)...))
		b.Spec.Prune.MaxFraction, b.Spec.Prune.Approved = "10%", approved
		p := plan.For(now, plan.Seen{Bundle: b, Revision: "r2", Wanted: machines(left...), Changes: []string{"x"}})
		if c := p.Status.Conditions[0]; c.Reason == plan.ApprovalNeeded {
			return c.Message
		}
		return ""
	}
	message := waits(nil)
	digest := regexp.MustCompile(`sha256:[0-9a-f]{64}`).FindString(message)
	if digest == "" || !strings.Contains(message, "300 of 300") || !strings.Contains(message, "ns/machine-000, ns/machine-001") || len(message) > 1500 {
		t.Fatalf("got %d bytes: %s", len(message), message)
	}
	var named []string // as virtctl plan names them
	for _, name := range has {
		named = append(named, "ns/"+name)
	}
	if said := gitplan.Approval(named); said != digest {
		t.Errorf("a plan says %s, the Bundle %s", said, digest)
	}
	if got := waits([]string{digest}); got != "" {
		t.Errorf("approved: %s", got)
	}
	if got := waits([]string{digest}, has[7]); got == "" {
		t.Error("the digest of 300 approves 299 of them")
	}
	if got := waits([]string{digest, "ns/" + has[7]}); got == "" || strings.Contains(got, digest) {
		t.Errorf("the digest of all approves what is left when one is named: %s", got)
	}
}

var namespace = v1alpha1.ResourceRef{ID: "_shop__Namespace", Version: "v1"}

var disk = v1alpha1.ResourceRef{ID: "ns_disk__PersistentVolumeClaim", Version: "v1"}

func policy(p v1alpha1.DeletionPolicy) change {
	return func(b *v1alpha1.Bundle) { b.Spec.DeletionPolicy = p }
}

func TestKeptAndRemoved(t *testing.T) {
	for name, tc := range map[string]struct {
		seen plan.Seen
		want string
	}{
		"a protected machine is kept with the disks, the rest goes": {
			plan.Seen{Bundle: bundle(applied("r2", one, two, vm, disk)), Revision: "r2", Wanted: refs{one}, Left: refs{two, vm, disk}, Protected: refs{vm}},
			"removing what is not in r2: ns_two__ConfigMap; " + progress + "; applied=r2; has ns_one__ConfigMap ns_two__ConfigMap ns_web_kubevirt.io_VirtualMachine ns_disk__PersistentVolumeClaim; again in 1s",
		},
		"what would take it along is kept, too": {
			plan.Seen{Bundle: bundle(applied("r2", vm, namespace)), Revision: "r2", Left: refs{vm, namespace}, Protected: refs{vm}},
			"Ready=True ReconciliationSucceeded; applied=r2; has _shop__Namespace ns_web_kubevirt.io_VirtualMachine; again in 5m0s",
		},
		"or any machine": {
			plan.Seen{Bundle: bundle(applied("r2", vm, namespace), keepVMs), Revision: "r2", Left: refs{vm, namespace}},
			"Ready=True ReconciliationSucceeded; applied=r2; again in 5m0s",
		},
		"and then stays in the inventory": {
			plan.Seen{Bundle: bundle(applied("r2", one, vm, disk)), Revision: "r2", Wanted: refs{one}, Left: refs{vm, disk}, Protected: refs{vm}},
			"Ready=True ReconciliationSucceeded; applied=r2; has ns_disk__PersistentVolumeClaim ns_one__ConfigMap ns_web_kubevirt.io_VirtualMachine; again in 5m0s",
		},
		"it doesn't hold up the Bundle's end": {
			plan.Seen{Bundle: bundle(applied("r2", vm), deleted(0)), Left: refs{vm}, Protected: refs{vm}},
			"dropping the finalizer; applied=r2; has ns_web_kubevirt.io_VirtualMachine",
		},
		"deleted, all is left": {
			plan.Seen{Bundle: bundle(applied("r1", one), deleted(0), policy(v1alpha1.DeletionOrphan)), Left: refs{one}}, "dropping the finalizer; applied=r1; has ns_one__ConfigMap",
		},
		"deleted, all goes": {
			plan.Seen{Bundle: bundle(applied("r1", one), deleted(0), noPrune, policy(v1alpha1.DeletionDelete)), Left: refs{one}},
			"removing all: ns_one__ConfigMap; Ready=False Removing; Reconciling=True Removing; applied=r1; has ns_one__ConfigMap; again in 1s",
		},
		"deleted, all goes but machines": {
			plan.Seen{Bundle: bundle(applied("r1", vm), deleted(0), keepVMs, policy(v1alpha1.DeletionDelete)), Left: refs{vm}},
			"dropping the finalizer; applied=r1; has ns_web_kubevirt.io_VirtualMachine",
		},
		"before its end the policy says nothing": {
			plan.Seen{Bundle: bundle(applied("r2", one, two), noPrune, policy(v1alpha1.DeletionDelete)), Revision: "r2", Wanted: refs{one}, Left: refs{two}},
			"Ready=True ReconciliationSucceeded; applied=r2; has ns_one__ConfigMap; again in 5m0s",
		},
	} {
		p := plan.For(now, tc.seen)
		if got := shown(p); got != tc.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, tc.want)
		}
	}
}
