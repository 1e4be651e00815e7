package bundle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/source/sourcetest"
	"virtstack.io/virtstack/kube/release"
)

// beside returns the same tenant with a second Bundle, of a repository of its own.
func (x *tenant) beside(name string) *tenant {
	x.t.Helper()
	y := *x
	y.repo = sourcetest.Serve(x.t)
	y.bundle = x.bundle.DeepCopy()
	y.bundle.ObjectMeta = metav1.ObjectMeta{Namespace: x.namespace, Name: name}
	y.bundle.Spec.Source.Git.URL = y.repo.URL
	return &y
}

// version returns the resource version of ConfigMap a, "" where there is none.
func (x *tenant) version() string {
	x.t.Helper()
	m := &corev1.ConfigMap{}
	if !x.exists(m, "a") {
		return ""
	}
	return m.ResourceVersion
}

func (x *tenant) delete(o client.Object) {
	x.t.Helper()
	if err := x.Client.Delete(x.t.Context(), o); err != nil {
		x.t.Fatal(err)
	}
}

// Two Bundles that claim one object: the one that has it keeps it, the other says who has it, and neither writes while
// the other is there. What a Bundle doesn't own it never removes: not by a commit, not by its own end.
func TestTwoBundlesThatClaimOneObject(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.settle()
	first, y := x.version(), x.beside("second")
	y.repo.Commit("a.yaml", settings("a", "two"))
	y.repo.Commit("b.yaml", settings("b", "two"))
	y.create(y.bundle)
	for range 3 {
		y.failed(y.settle(), "Refused", "ConfigMap "+x.namespace+"/a (a.yaml)", "another Bundle", x.namespace+"/apps")
		if status, _, _ := condition(x.settle(), "Ready"); status != metav1.ConditionTrue {
			t.Errorf("the Bundle that has it: Ready is %s", status)
		}
	}
	if x.exists(&corev1.ConfigMap{}, "b") || x.version() != first {
		t.Errorf("a part of the second Bundle was applied, or the object was fought over: %s, then %s", first, x.version())
	}
	y.drop("a.yaml") // it has never been the second's: nothing to prune
	hash := y.repo.Commit("c.yaml", settings("c", "two"))
	y.ready(y.settle(), "main@sha1:"+hash)
	y.delete(y.bundle)
	y.settle()
	if x.version() != first || x.exists(&corev1.ConfigMap{}, "b") {
		t.Error("the second Bundle's end removed the first's object, or left its own")
	}
}

// Once the first lets it go the second takes it, and the first removes nothing of it from then on.
func TestAnObjectMovesFromBundleToBundle(t *testing.T) {
	for name, prune := range map[string]bool{"pruned by the first": true, "left by the first": false} {
		t.Run(name, func(t *testing.T) {
			x := start(t)
			x.bundle.Spec.Prune.Enabled = prune
			x.repo.Commit("a.yaml", settings("a", "one"))
			x.repo.Commit("rest.yaml", settings("rest", "one"))
			x.create(x.bundle)
			x.settle()
			y := x.beside("second")
			hash := y.repo.Commit("a.yaml", settings("a", "two"))
			y.create(y.bundle)
			y.failed(y.settle(), "Refused", "another Bundle")
			x.drop("a.yaml")
			x.settle()
			if x.exists(&corev1.ConfigMap{}, "a") == prune {
				t.Fatalf("prune is %v, and the object is there: %v", prune, !prune)
			}
			y.ready(y.settle(), "main@sha1:"+hash)
			m := &corev1.ConfigMap{}
			if !y.exists(m, "a") || m.Data["value"] != "two" || m.Labels["bundle.virtstack.io/name"] != "second" {
				t.Errorf("the second has not taken it: %v %v", m.Labels, m.Data)
			}
			x.repo.Commit("a.yaml", settings("a", "one"))
			x.failed(x.settle(), "Refused", "another Bundle", x.namespace+"/second")
			x.delete(x.bundle)
			x.settle()
			if !y.exists(m, "a") {
				t.Error("the first removed what is the second's")
			}
		})
	}
}

// What a Bundle without prune leaves when it goes is free for the next, though it carries its labels still.
func TestWhatABundleLeftBehindIsFree(t *testing.T) {
	x := start(t)
	x.bundle.Spec.Prune.Enabled = false
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.settle()
	x.delete(x.bundle)
	x.settle()
	y := x.beside("second")
	hash := y.repo.Commit("a.yaml", settings("a", "two"))
	y.create(y.bundle)
	y.ready(y.settle(), "main@sha1:"+hash)
}

// Between the look and the write another Bundle may have made the object: it stays that one's.
func TestTheSecondOfTwoAtOnceIsRefused(t *testing.T) {
	x := start(t)
	y := x.beside("second")
	x.repo.Commit("a.yaml", settings("a", "one"))
	y.repo.Commit("a.yaml", settings("a", "two"))
	x.create(x.bundle)
	y.create(y.bundle)
	both := []*tenant{x, y}
	var rounds []*round
	for _, b := range both {
		b.round() // the finalizer
		b.round() // the inventory
		live := &v1alpha1.Bundle{}
		if err := x.Client.Get(t.Context(), client.ObjectKeyFromObject(b.bundle), live); err != nil {
			t.Fatal(err)
		}
		r, err := x.controller.observe(t.Context(), live)
		if err != nil || r.seen.Failure != nil || r.changes.Empty() {
			t.Fatalf("the look of %s: %v, %+v", live.Name, err, r.seen)
		}
		rounds = append(rounds, r)
	}
	if err := rounds[0].releaser.Apply(t.Context(), rounds[0].changes); err != nil {
		t.Fatal(err)
	}
	made := x.version()
	err := rounds[1].releaser.Apply(t.Context(), rounds[1].changes)
	if f := rounds[1].explain(err); f.Reason != "Refused" || !f.Final {
		t.Errorf("the second's write: %v, %+v", err, f)
	}
	y.failed(y.settle(), "Refused", "another Bundle", x.namespace+"/apps")
	y.delete(y.bundle)
	y.settle()
	if x.version() != made {
		t.Error("the second wrote or removed what is the first's")
	}
}

// What the operator has installed is no Bundle's.
func TestAComponentIsNoBundles(t *testing.T) {
	x := start(t)
	operators := release.Owner{Group: release.OperatorGroup, Namespace: "kubevirt", Name: "kubevirt"}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "a", Labels: operators.Labels()}}
	x.create(m)
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.failed(x.settle(), "Refused", "ConfigMap "+x.namespace+"/a (a.yaml)", "the components of KubeVirt: kubevirt/kubevirt")
	if x.version() != m.ResourceVersion {
		t.Error("it was written")
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"operator.virtstack.io/name":null}}}`))
	if err := x.Client.Patch(t.Context(), m, patch); err != nil {
		t.Fatal(err)
	}
	x.now = x.now.Add(time.Minute)
	b := x.settle()
	x.ready(b, b.Status.LastAttemptedRevision)
}
