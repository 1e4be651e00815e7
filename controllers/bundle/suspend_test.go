package bundle

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
)

func TestASuspendedBundleSaysSoAndDoesNothing(t *testing.T) {
	x := start(t)
	first := x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+first)
	x.suspend(true)
	second := x.repo.Commit("b.yaml", settings("b", "two"))
	b := x.settle()
	x.ready(b, "main@sha1:"+first) // healthy, and observed
	if _, reason, message := condition(b, "Ready"); reason != plan.Suspended || message != "suspended; applied revision main@sha1:"+first {
		t.Errorf("Ready says %s: %s", reason, message)
	}
	x.writes.Store(0)
	x.settle()
	if n := x.writes.Load(); n != 0 || x.exists(&corev1.ConfigMap{}, "b") {
		t.Errorf("wrote %d times while suspended", n)
	}
	x.suspend(false)
	b = x.settle()
	x.ready(b, "main@sha1:"+second)
	if _, reason, _ := condition(b, "Ready"); reason != plan.Succeeded {
		t.Errorf("resumed: reason %s", reason)
	}
}

func (x *tenant) suspend(yes bool) {
	x.t.Helper()
	b := &v1alpha1.Bundle{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKeyFromObject(x.bundle), b); err != nil {
		x.t.Fatal(err)
	}
	b.Spec.Suspend = yes
	if err := x.Client.Update(x.t.Context(), b); err != nil {
		x.t.Fatal(err)
	}
}

// A commit that is refused before it is built is named all the same, and what stood before stands.
func TestALinkThatLeadsOutNamesItsCommit(t *testing.T) {
	x := start(t)
	first := x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+first)
	if err := os.Symlink("/etc/passwd", filepath.Join(x.repo.Dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	second := x.repo.CommitAll()
	b := x.settle()
	x.failed(b, plan.FetchFailed, "main@sha1:"+second, "link.yaml is a link that leads out")
	if status, _, _ := condition(b, "Stalled"); status != metav1.ConditionTrue {
		t.Errorf("Stalled is %s", status)
	}
	if b.Status.LastAttemptedRevision != "main@sha1:"+second || b.Status.LastAppliedRevision != "main@sha1:"+first {
		t.Errorf("attempted %s, applied %s", b.Status.LastAttemptedRevision, b.Status.LastAppliedRevision)
	}
}
