package bundle

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

// careful is a tenant whose Bundle goes back, with a revision that is healthy.
func careful(t *testing.T) (x *tenant, good string) {
	x = start(t)
	x.bundle.Spec.Rollback = &v1alpha1.BundleRollback{OnFailure: true}
	x.bundle.Spec.HealthCheckExprs = []kustomize.CustomHealthCheck{expressions("ConfigMap", "data.value.startsWith('good')", "", "data.value == 'bad'")}
	good = "main@sha1:" + x.repo.Commit("a.yaml", settings("a", "good"))
	x.create(x.bundle)
	x.ready(x.settle(), good)
	return x, good
}

// back checks that the Bundle has gone back from one revision to another.
func (x *tenant) back(b *v1alpha1.Bundle, from, to string) {
	x.t.Helper()
	x.failed(b, plan.RolledBack, from, to, "ConfigMap "+x.namespace+"/a: failed")
	for _, kind := range []string{"Stalled", plan.RolledBack} {
		if status, _, message := condition(b, kind); status != "True" || !strings.Contains(message, "the source has "+from) {
			x.t.Errorf("%s is %s: %s", kind, status, message)
		}
	}
	if r := b.Status.RolledBack; r == nil || r.From != from || r.To != to || r.Reason != plan.Unhealthy || b.Status.LastAppliedRevision != to {
		x.t.Errorf("rolled back: %+v, applied %s", r, b.Status.LastAppliedRevision)
	}
	x.holds("a", "good")
}

func (x *tenant) told(reason string) bool {
	for recorder := x.controller.events.(*events.FakeRecorder); len(recorder.Events) > 0; {
		if e := <-recorder.Events; strings.Contains(e, " "+reason+" ") {
			return true
		}
	}
	return false
}

// A revision that isn't healthy is gone back from, which is said for as long as it is so: a new commit ends it.
func TestAnUnhealthyRevisionIsGoneBackFrom(t *testing.T) {
	x, good := careful(t)
	x.repo.Write("b.yaml", settings("b", "good"))
	bad := "main@sha1:" + x.repo.Commit("a.yaml", settings("a", "bad"))
	b := x.settle()
	x.back(b, bad, good)
	if x.exists(&corev1.ConfigMap{}, "b") {
		t.Error("what only the failed revision has is still there")
	}
	if !x.told(plan.RolledBack) || x.exported()["virtstack_bundle_rolled_back{name=apps}"] != 1 {
		t.Error("no event, or no metric")
	}
	var outcomes []string
	for _, h := range b.Status.History {
		outcomes = append(outcomes, h.Outcome)
	}
	if got := strings.Join(outcomes, " "); got != "RolledBack HealthCheckFailed ReconciliationSucceeded" {
		t.Errorf("history: %s", got)
	}
	x.writes.Store(0)
	x.now = x.now.Add(10 * time.Minute)
	x.back(x.settle(), bad, good)
	x.controller = x.process(nil)
	x.now = x.now.Add(10 * time.Minute)
	x.back(x.settle(), bad, good)
	if n := x.writes.Load(); n != 0 {
		t.Errorf("looking again, and after a restart, wrote %d times", n)
	}
	x.as("someone", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {value: good drift}\n")
	x.now = x.now.Add(10 * time.Minute)
	x.back(x.settle(), bad, good)

	next := "main@sha1:" + x.repo.Commit("a.yaml", settings("a", "good again"))
	b = x.settle()
	x.ready(b, next)
	if b.Status.RolledBack != nil || len(b.Status.Conditions) != 1 || !x.told("RollbackEnded") || x.exported()["virtstack_bundle_rolled_back{name=apps}"] != 0 {
		t.Errorf("a new commit: %+v", b.Status)
	}
	x.exists(&corev1.ConfigMap{}, "b")
}

// A new spec tries the failed revision again.
func TestANewSpecEndsARollback(t *testing.T) {
	x, good := careful(t)
	bad := "main@sha1:" + x.repo.Commit("a.yaml", settings("a", "bad"))
	x.back(x.settle(), bad, good)
	x.change(func(s *v1alpha1.BundleSpec) { s.Suspend = true })
	if b := x.settle(); b.Status.RolledBack == nil {
		t.Error("a suspended Bundle forgets that it has gone back")
	}
	x.change(func(s *v1alpha1.BundleSpec) { s.Suspend, s.HealthCheckExprs = false, nil })
	x.ready(x.settle(), bad)
	x.holds("a", "bad")
}

// A revision that was healthy once is not left, whatever becomes of its objects; nor is one that nothing was healthy before.
func TestWhatWasHealthyIsNotLeft(t *testing.T) {
	x, good := careful(t)
	x.change(func(s *v1alpha1.BundleSpec) { s.HealthCheckExprs[0].Failed = "true" })
	b := x.settle()
	x.failed(b, plan.Unhealthy, good)
	if b.Status.RolledBack != nil {
		t.Errorf("gone back: %+v", b.Status.RolledBack)
	}
	y := x.beside("second")
	y.bundle.Spec.Rollback, y.bundle.Spec.HealthCheckExprs = x.bundle.Spec.Rollback, x.bundle.Spec.HealthCheckExprs
	y.repo.Commit("c.yaml", settings("c", "bad"))
	y.create(y.bundle)
	b = y.settle()
	y.failed(b, plan.Unhealthy)
	if b.Status.RolledBack != nil || b.Status.LastHealthyRevision != "" {
		t.Errorf("gone back from the first: %+v", b.Status)
	}
}

// Where a tag has to be signed, going back after a restart is to the signed tag, as long as it leads to what was healthy.
func TestGoingBackToASignedTag(t *testing.T) {
	x := start(t)
	key := sourcetest.NewKey(t)
	x.keys("Secret", key)
	x.repo.SignSSH(key)
	g := x.bundle.Spec.Source.Git
	g.Ref = v1alpha1.GitRef{SemVer: "1.x"}
	g.Verify = &v1alpha1.GitVerification{Mode: v1alpha1.VerifyTag, SecretRef: &v1alpha1.LocalObjectReference{Name: "signers"}}
	x.bundle.Spec.Rollback = &v1alpha1.BundleRollback{OnFailure: true}
	x.bundle.Spec.HealthCheckExprs = []kustomize.CustomHealthCheck{expressions("ConfigMap", "data.value.startsWith('good')", "", "data.value == 'bad'")}
	release := func(version, value string) string {
		hash := x.repo.Commit("a.yaml", settings("a", value))
		x.repo.Git("tag", "-f", "-s", "-m", version, version)
		return version + "@sha1:" + hash
	}
	good := release("v1.0.0", "good")
	x.create(x.bundle)
	x.ready(x.settle(), good)
	bad := release("v1.1.0", "bad")
	x.back(x.settle(), bad, good)
	x.controller = x.process(nil)
	x.now = x.now.Add(10 * time.Minute)
	x.back(x.settle(), bad, good)
	moved := release("v1.0.0", "good and moved")
	x.controller = x.process(nil)
	x.now = x.now.Add(10 * time.Minute)
	x.failed(x.settle(), plan.RollbackFailed, "the source has "+moved+" in place of the last healthy revision")
	x.holds("a", "good")
}

// A rollback that fails says why, and what is applied stays.
func TestARollbackThatFailsIsSaid(t *testing.T) {
	x, good := careful(t)
	x.repo.Git("checkout", "-q", "--orphan", "other") // a force push: the good commit is in no branch any more
	x.repo.Git("branch", "-q", "-D", "main")
	x.repo.Git("branch", "-q", "-m", "main")
	bad := "main@sha1:" + x.repo.Commit("a.yaml", settings("a", "bad"))
	x.repo.Git("reflog", "expire", "--expire=now", "--all")
	x.repo.Git("gc", "-q", "--prune=now")
	x.change(func(s *v1alpha1.BundleSpec) { s.Interval = nil; s.Path = "." }) // what was built no longer is what is wanted
	b := x.settle()
	x.failed(b, plan.RollbackFailed, "going back from "+bad+" to "+good, "fetching the last healthy revision again", "what is applied stays")
	if status, _, _ := condition(b, plan.RolledBack); status != "True" {
		t.Errorf("RolledBack is %q", status)
	}
	x.holds("a", "bad")
	next := "main@sha1:" + x.repo.Commit("a.yaml", settings("a", "good"))
	x.now = x.now.Add(10 * time.Minute)
	x.ready(x.settle(), next)
}
