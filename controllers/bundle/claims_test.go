package bundle

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

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
		r, err := x.controller.observe(t.Context(), live, x.now)
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

// An object of another Git tool is refused as one of another Bundle is, and nothing of it is forced
// or removed.
func TestObjectsOfOtherGitToolsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ manager, mark, want string }{
		"Flux":    {"kustomize-controller", "labels: {kustomize.toolkit.fluxcd.io/name: shop, kustomize.toolkit.fluxcd.io/namespace: flux-system}", "Kustomization flux-system/shop"},
		"Argo CD": {"argocd-controller", `annotations: {argocd.argoproj.io/tracking-id: "shop:/ConfigMap:x/a"}`, "Application shop"},
		"marks":   {"somebody", `annotations: {argocd.argoproj.io/tracking-id: "shop:/ConfigMap:x/a"}`, "Application shop"},
		"fields":  {"helm-controller", "labels: {team: a}", "helm-controller"},
	} {
		t.Run(name, func(t *testing.T) {
			x := start(t)
			x.as(tc.manager, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, "+tc.mark+"}, data: {value: theirs}}")
			before := x.version()
			x.repo.Commit("a.yaml", settings("a", "ours"))
			x.repo.Commit("b.yaml", settings("b", "ours"))
			x.create(x.bundle)
			b := x.settle()
			x.failed(b, "Refused", b.Status.LastAttemptedRevision, "ConfigMap "+x.namespace+"/a (a.yaml)", tc.want, "take it out of one of the two")
			if x.version() != before || x.exists(&corev1.ConfigMap{}, "b") {
				t.Error("something was forced, or a part of the commit was applied")
			}
			x.drop("a.yaml")
			hash := x.repo.Commit("b.yaml", settings("b", "two"))
			x.ready(x.settle(), "main@sha1:"+hash)
			x.delete(x.bundle)
			x.settle()
			if x.version() != before {
				t.Error("the Bundle's end touched what is another's")
			}
		})
	}
}

// What another Git tool takes over from a Bundle is left to it, and removed neither by a commit nor with the Bundle. Once
// its marks are gone it is free.
func TestATakenOverObjectIsLeft(t *testing.T) {
	x := start(t)
	x.repo.Commit("rest.yaml", settings("rest", "one"))
	x.repo.Commit("a.yaml", settings("a", "ours"))
	x.create(x.bundle)
	x.settle()
	x.as("kustomize-controller", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {kustomize.toolkit.fluxcd.io/name: shop}}, data: {value: theirs}}")
	taken := x.version()
	x.now = x.now.Add(10 * time.Minute)
	x.failed(x.settle(), "Refused", "ConfigMap "+x.namespace+"/a (a.yaml)", "kustomize-controller from Kustomization /shop")
	hash := x.drop("a.yaml")
	x.ready(x.settle(), "main@sha1:"+hash)
	x.delete(x.bundle)
	x.settle()
	if x.version() != taken {
		t.Error("it was written or removed")
	}
	y := x.beside("second") // handed over as docs/git-workflow.md says
	hash = y.repo.Commit("a.yaml", settings("a", "two"))
	y.create(y.bundle)
	y.failed(y.settle(), "Refused", "Kustomization /shop")
	patch := `{"metadata":{"managedFields":[{}],"labels":{"kustomize.toolkit.fluxcd.io/name":null}}}`
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "a"}}
	if err := x.Client.Patch(t.Context(), m, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	y.now = y.now.Add(time.Minute)
	y.ready(y.settle(), "main@sha1:"+hash)
}

// What is there already, and no Git tool's, is taken over: the Bundle writes what the commit says, and an event names the
// object, once. What the Bundle has made itself is nothing to tell, also where somebody took its labels off.
func TestWhatWasNobodysIsTakenOver(t *testing.T) {
	x := start(t)
	x.as("kubectl", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {value: theirs}}")
	x.repo.Commit("a.yaml", settings("a", "ours"))
	hash := x.repo.Commit("b.yaml", settings("b", "ours"))
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+hash)
	x.holds("a", "ours")
	if said := x.said("TakenOver"); len(said) != 1 || !strings.Contains(said[0], "ConfigMap "+x.namespace+"/a") || strings.Contains(said[0], x.namespace+"/b") {
		t.Errorf("events: %v", said)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))
	for _, name := range []string{"a", "b"} {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name}}
		if err := x.Client.Patch(t.Context(), m, patch); err != nil {
			t.Fatal(err)
		}
	}
	x.now = x.now.Add(10 * time.Minute)
	x.ready(x.settle(), "main@sha1:"+hash)
	x.holds("a", "ours")
	if said := x.said("TakenOver"); len(said) != 0 {
		t.Errorf("events of drift: %v", said)
	}
}

// said takes the events so far and returns those with a reason.
func (x *tenant) said(reason string) []string {
	var all []string
	for recorder := x.controller.events.(*events.FakeRecorder); len(recorder.Events) > 0; {
		if one := <-recorder.Events; strings.Contains(one, " "+reason+" ") {
			all = append(all, one)
		}
	}
	return all
}

// as applies a manifest in the tenant's namespace as another field manager does.
func (x *tenant) as(manager, manifest string) {
	x.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		x.t.Fatal(err)
	}
	u.SetNamespace(x.namespace)
	if err := x.Client.Apply(x.t.Context(), client.ApplyConfigurationFromUnstructured(u), client.ForceOwnership, client.FieldOwner(manager)); err != nil {
		x.t.Fatal(err)
	}
}
