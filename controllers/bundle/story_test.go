package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
)

func TestCommitIsAppliedOnce(t *testing.T) {
	x := start(t)
	hash := x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	b := x.settle()
	x.ready(b, "main@sha1:"+hash)
	if got := b.Status.Inventory.Entries; len(got) != 1 || got[0].ID != x.namespace+"_a__ConfigMap" || got[0].Version != "v1" {
		t.Errorf("inventory: %v", got)
	}
	var m corev1.ConfigMap
	if !x.exists(&m, "a") || m.Labels["bundle.virtstack.io/name"] != "apps" || m.Data["value"] != "one" {
		t.Errorf("applied: %v %v", m.Labels, m.Data)
	}

	x.writes.Store(0)
	x.now = x.now.Add(10 * time.Minute)
	x.settle()
	if n := x.writes.Load(); n != 0 {
		t.Errorf("a second sync of the same commit wrote %d times", n)
	}
	x.controller.builds = newBuilds() // a restart
	x.settle()
	if n := x.writes.Load(); n != 0 {
		t.Errorf("a sync after a restart wrote %d times", n)
	}

	m.Data["value"] = "drift"
	if err := x.Client.Update(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	x.settle()
	if x.exists(&m, "a"); m.Data["value"] != "one" {
		t.Errorf("drift was not corrected: %v", m.Data)
	}
}

func TestRefusedObjectKeepsTheRestUnapplied(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	good := x.settle().Status.LastAppliedRevision

	x.repo.Commit("a.yaml", settings("a", "two"))
	x.repo.Commit("b.yaml", settings("b", "new"))
	hash := x.repo.Commit("net/bad.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 0}]}\n")
	b := x.settle()
	x.failed(b, "Refused", hash, "Service "+x.namespace+"/bad", "net/bad.yaml", "spec.ports[0].port")
	if status, _, _ := condition(b, "Stalled"); status != metav1.ConditionTrue {
		t.Errorf("an invalid object: Stalled is %q", status)
	}
	var m corev1.ConfigMap
	if x.exists(&m, "a"); m.Data["value"] != "one" || x.exists(&m, "b") {
		t.Error("a part of the commit was applied")
	}
	if b.Status.LastAppliedRevision != good || b.Status.LastAttemptedRevision != "main@sha1:"+hash {
		t.Errorf("applied %s, attempted %s", b.Status.LastAppliedRevision, b.Status.LastAttemptedRevision)
	}

	fixed := x.repo.Commit("net/bad.yaml", "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 80}]}\n")
	b = x.settle()
	x.ready(b, "main@sha1:"+fixed)
	if len(b.Status.Conditions) != 1 || !x.exists(&m, "b") {
		t.Errorf("after the fix: %v", b.Status.Conditions)
	}
}

func TestBadCommitsLeaveTheLastGoodState(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	good := x.settle().Status
	hash := x.repo.Commit("b.yaml", "apiVersion: v1\nkind: [\n")
	b := x.settle()
	x.failed(b, "BuildFailed", hash, "b.yaml", "line")
	if b.Status.LastAppliedRevision != good.LastAppliedRevision || !slices.Equal(b.Status.Inventory.Entries, good.Inventory.Entries) || !x.exists(&corev1.ConfigMap{}, "a") {
		t.Errorf("the last good state is gone: %v", b.Status)
	}
	x.change(func(s *v1alpha1.BundleSpec) { s.Source.Git.Ref = v1alpha1.GitRef{Branch: "nope"} })
	x.failed(x.settle(), "FetchFailed", "branch nope", "no such ref")
	x.change(func(s *v1alpha1.BundleSpec) { s.Source.Git.URL = "http://127.0.0.1:1/gone.git" })
	b = x.settle()
	x.failed(b, "FetchFailed", "127.0.0.1:1")
	if status, _, _ := condition(b, "Reconciling"); status != metav1.ConditionTrue {
		t.Errorf("a server that is away: Reconciling is %q", status)
	}
	x.now = x.now.Add(10 * time.Minute)
	if status, _, _ := condition(x.settle(), "Stalled"); status != metav1.ConditionTrue {
		t.Errorf("a server that stays away: Stalled is %q", status)
	}
}

func (x *tenant) change(f func(*v1alpha1.BundleSpec)) {
	x.t.Helper()
	b := &v1alpha1.Bundle{}
	if err := x.Client.Get(x.t.Context(), client.ObjectKeyFromObject(x.bundle), b); err != nil {
		x.t.Fatal(err)
	}
	f(&b.Spec)
	if err := x.Client.Update(x.t.Context(), b); err != nil {
		x.t.Fatal(err)
	}
}

func (x *tenant) drop(name string) string {
	x.t.Helper()
	if err := os.Remove(filepath.Join(x.repo.Dir, name)); err != nil {
		x.t.Fatal(err)
	}
	return x.repo.CommitAll()
}

func TestPruningComesLast(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.repo.Commit("b.yaml", settings("b", "one"))
	x.repo.Commit("disk.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: d}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
	x.bundle.Spec.Wait = new(bool)
	x.bundle.Spec.Prune.VMs = v1alpha1.PruneKeep
	x.create(x.bundle)
	x.settle()

	x.repo.Commit("bad.yaml", "kind: x\n")
	x.drop("b.yaml")
	x.settle()
	if !x.exists(&corev1.ConfigMap{}, "b") {
		t.Fatal("pruned after a build that failed")
	}
	x.drop("disk.yaml")
	hash := x.drop("bad.yaml")
	b := x.settle()
	x.ready(b, "main@sha1:"+hash)
	if x.exists(&corev1.ConfigMap{}, "b") || !x.exists(&corev1.ConfigMap{}, "a") {
		t.Error("not pruned, or too much")
	}
	if !x.exists(&corev1.PersistentVolumeClaim{}, "d") || len(b.Status.Inventory.Entries) != 1 {
		t.Errorf("a disk that is to be kept was not, or is still ours: %v", b.Status.Inventory.Entries)
	}
}

// G8: a Bundle can do no more than its account.
func TestBundleHasItsAccountsRights(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "one"))
	hash := x.repo.Commit("up.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: up}\n"+
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: User, name: eve}]\n")
	x.create(x.bundle)
	x.failed(x.settle(), "Refused", hash, "ClusterRoleBinding up (up.yaml)", "forbidden", "deployer")
	if x.exists(&corev1.ConfigMap{}, "a") {
		t.Error("the rest of the commit was applied")
	}
	x.repo.Commit("up.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: up, namespace: default}\n")
	x.failed(x.settle(), "Refused", "ConfigMap default/up", "forbidden")

	// Its own account, without the tenant's, can't either.
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "own"}}
	if err := x.controller.client.Create(t.Context(), m); err == nil {
		t.Error("virt-bundles can write with its own rights")
	}
	if err := x.controller.client.List(t.Context(), &corev1.SecretList{}); err == nil {
		t.Error("virt-bundles can read Secrets with its own rights")
	}
}

func TestObjectsOfAnotherBundleAreRefused(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.settle()
	second := x.bundle.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: x.namespace, Name: "second"}
	x.bundle = second
	x.create(second)
	x.failed(x.settle(), "Refused", "ConfigMap "+x.namespace+"/a (a.yaml)", "another Bundle", x.namespace+"/apps")
}

func TestDeletionRemovesWhatWasApplied(t *testing.T) {
	for name, prune := range map[string]bool{"with prune": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			x := start(t)
			x.repo.Commit("a.yaml", settings("a", "one"))
			x.bundle.Spec.Prune.Enabled = prune
			x.create(x.bundle)
			x.settle()
			if err := x.Client.Delete(t.Context(), x.bundle); err != nil {
				t.Fatal(err)
			}
			if b := x.settle(); b.UID != "" {
				t.Errorf("the Bundle is still there: %v", b.Status.Conditions)
			}
			if x.exists(&corev1.ConfigMap{}, "a") == prune {
				t.Errorf("prune is %v, and the object is there: %v", prune, !prune)
			}
		})
	}
}

func TestCommitThatRemovesEverything(t *testing.T) {
	x := start(t)
	x.repo.Commit("kustomization.yaml", "resources: [a.yaml]\n")
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.settle()
	x.repo.Commit("kustomization.yaml", "resources: []\n")
	hash := x.drop("a.yaml")
	b := x.settle()
	x.ready(b, "main@sha1:"+hash)
	if x.exists(&corev1.ConfigMap{}, "a") || b.Status.Inventory != nil {
		t.Errorf("left: %v", b.Status.Inventory)
	}
}

// A namespace that goes takes the account's rights along before the Bundle has gone: neither waits for the other.
func TestNamespaceGoesWithItsBundle(t *testing.T) {
	x := start(t)
	x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.settle()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}
	if err := errors.Join(x.Client.Delete(t.Context(), ns), x.Client.Delete(t.Context(), x.bundle),
		x.Client.DeleteAllOf(t.Context(), &rbacv1.RoleBinding{}, client.InNamespace(x.namespace))); err != nil {
		t.Fatal(err)
	}
	if b := x.settle(); b.UID != "" {
		t.Errorf("the Bundle is still there: %v", b.Status.Conditions)
	}
}

const machine = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: web}\nspec:\n  runStrategy: Halted\n  template: {spec: {domain: {devices: {}}}}\n"

func TestWaitingForHealthHasADeadline(t *testing.T) {
	x := start(t)
	x.grant("virtualmachines")
	hash := x.repo.Commit("vm.yaml", machine)
	x.create(x.bundle)
	x.round()
	x.round()
	x.round()
	b := x.round()
	if status, _, message := condition(b, "Reconciling"); status != metav1.ConditionTrue {
		t.Fatalf("Reconciling is %q: %s", status, message)
	}
	if b.Status.LastAppliedRevision != "main@sha1:"+hash {
		t.Errorf("applied is %s", b.Status.LastAppliedRevision)
	}
	x.now = x.now.Add(6 * time.Minute)
	b = x.round()
	x.failed(b, "HealthCheckFailed", "VirtualMachine "+x.namespace+"/web", hash)
	if status, _, _ := condition(b, "Stalled"); status != metav1.ConditionTrue {
		t.Errorf("after the deadline: Stalled is %q", status)
	}
	vm := &v1.VirtualMachine{}
	x.exists(vm, "web")
	patch := []byte(`{"status":{"observedGeneration":1}}`)
	if err := x.Client.Status().Patch(t.Context(), vm, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	x.ready(x.settle(), "main@sha1:"+hash)
}

// round does one round a second after the last.
func (x *tenant) round() *v1alpha1.Bundle {
	x.t.Helper()
	x.now = x.now.Add(time.Second)
	key := client.ObjectKeyFromObject(x.bundle)
	if _, err := x.controller.Round(x.t.Context(), key, x.now); err != nil {
		x.t.Fatal(err)
	}
	b := &v1alpha1.Bundle{}
	if err := x.Client.Get(x.t.Context(), key, b); err != nil {
		x.t.Fatal(err)
	}
	return b
}

// One commit may bring a kind, a namespace and objects of them, VMs too. Source: fluxcd/flux2#523.
func TestKindsAndNamespacesComeFirst(t *testing.T) {
	x := start(t)
	x.bundle.Spec.ServiceAccountName, x.bundle.Spec.Wait = "admin", new(bool)
	x.repo.Commit("admin.yaml", `apiVersion: example.test/v1
kind: Thing
metadata: {name: t, namespace: `+x.namespace+`-new}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web, namespace: `+x.namespace+`-new}
spec: {runStrategy: Halted, template: {spec: {domain: {devices: {}}}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: `+x.namespace+`-new}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.test}
spec:
  group: example.test
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`)
	x.admin()
	x.create(x.bundle)
	b := x.settle()
	x.ready(b, b.Status.LastAttemptedRevision)
	if len(b.Status.Inventory.Entries) != 4 {
		t.Errorf("inventory: %v", b.Status.Inventory.Entries)
	}
}
