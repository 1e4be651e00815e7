package bundle

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
)

// What is on the branch counts, however it came there: by a revert, by a push that drops commits, by one that has
// nothing in common with what was there.
func TestHistoryThatGoesBack(t *testing.T) {
	x := start(t)
	first := x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+first)
	x.repo.Write("b.yaml", settings("b", "one"))
	second := x.repo.Commit("a.yaml", settings("a", "two"))
	x.ready(x.settle(), "main@sha1:"+second)
	is := func(what, hash, a string, b bool) {
		t.Helper()
		x.ready(x.settle(), "main@sha1:"+hash)
		x.holds("a", a)
		if x.exists(&corev1.ConfigMap{}, "b") != b {
			t.Errorf("%s: b is there: %t", what, !b)
		}
	}
	x.repo.Git("revert", "--no-edit", "HEAD")
	is("reverted", strings.TrimSpace(x.repo.Git("rev-parse", "HEAD")), "one", false)
	x.repo.Git("reset", "-q", "--hard", second)
	is("the revert dropped", second, "two", true)
	x.repo.Git("reset", "-q", "--hard", first)
	is("both dropped", first, "one", false)
	x.repo.Git("checkout", "-q", "--orphan", "other")
	other := x.repo.Commit("a.yaml", settings("a", "other"))
	x.repo.Git("branch", "-q", "-M", "other", "main")
	is("another history", other, "other", false)
}

// A branch that is deleted removes nothing: the Bundle says that it is missing until it is there again.
func TestADeletedBranchRemovesNothing(t *testing.T) {
	x := start(t)
	hash := x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+hash)
	made := x.version()
	x.repo.Git("branch", "-q", "-m", "main", "elsewhere")
	b := x.settle()
	x.failed(b, "FetchFailed", "branch main", "no such ref")
	if x.version() != made || b.Status.LastAppliedRevision != "main@sha1:"+hash || len(b.Status.Inventory.Entries) != 1 {
		t.Errorf("something was written or removed: %v", b.Status)
	}
	x.repo.Git("branch", "-q", "-m", "elsewhere", "main")
	x.now = x.now.Add(10 * time.Minute)
	x.ready(x.settle(), "main@sha1:"+hash)
	if x.version() != made {
		t.Error("it was written again")
	}
}

// The name of a file says nothing; another name in it is another machine: that one is made, and the old one goes.
func TestRenames(t *testing.T) {
	x := start(t)
	x.grant("virtualmachines")
	x.bundle.Spec.Wait = new(bool)
	x.repo.Commit("web.yaml", machine)
	x.create(x.bundle)
	x.settle()
	before, after := &v1.VirtualMachine{}, &v1.VirtualMachine{}
	x.exists(before, "web")
	move(t, x.repo.Dir, "web.yaml", "shop/frontend.yaml")
	hash := x.repo.CommitAll()
	x.ready(x.settle(), "main@sha1:"+hash)
	if !x.exists(after, "web") || after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("a file was renamed, and the machine is another or was written: %s %s", after.UID, after.ResourceVersion)
	}
	hash = x.repo.Commit("shop/frontend.yaml", strings.Replace(machine, "name: web", "name: www", 1))
	b := x.settle()
	x.ready(b, "main@sha1:"+hash)
	if x.exists(after, "web") || !x.exists(after, "www") || after.UID == before.UID || len(b.Status.Inventory.Entries) != 1 {
		t.Errorf("the machine was renamed: %v", b.Status.Inventory.Entries)
	}
}

func move(t *testing.T, dir, from, to string) {
	t.Helper()
	to = filepath.Join(dir, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, from), to); err != nil {
		t.Fatal(err)
	}
}

// door is a way to a repository that can be shut: connections are cut off then.
func (x *tenant) door() (shut *atomic.Bool) {
	x.t.Helper()
	behind, err := url.Parse(x.repo.URL)
	if err != nil {
		x.t.Fatal(err)
	}
	shut, path := &atomic.Bool{}, behind.Path
	behind.Path = ""
	through := httputil.NewSingleHostReverseProxy(behind)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if shut.Load() {
			panic(http.ErrAbortHandler)
		}
		through.ServeHTTP(w, q)
	}))
	x.t.Cleanup(s.Close)
	x.bundle.Spec.Source.Git.URL = s.URL + path
	return shut
}

// A Git server that is away for minutes changes nothing but the Bundle's conditions; drift is not corrected meanwhile, and
// once the server is back what was committed in between is applied without anybody's doing.
func TestAGitServerThatComesBack(t *testing.T) {
	x := start(t)
	shut := x.door()
	hash := x.repo.Commit("a.yaml", settings("a", "one"))
	x.bundle.Spec.RetryInterval = &metav1.Duration{Duration: 30 * time.Second}
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+hash)
	made := x.version()
	shut.Store(true)
	next := x.repo.Commit("a.yaml", settings("a", "two"))
	for range 10 {
		again, err := x.controller.Round(t.Context(), client.ObjectKeyFromObject(x.bundle), x.now)
		if wait := again.Sub(x.now); err != nil || wait < 20*time.Second || wait > 40*time.Second {
			t.Fatalf("looked at again after %s: %v", wait, err)
		}
		x.now = again
	}
	b := x.round()
	x.failed(b, "FetchFailed", x.bundle.Spec.Source.Git.URL)
	if b.Status.LastAppliedRevision != "main@sha1:"+hash || x.version() != made {
		t.Errorf("the server is away, and something has changed: %v", b.Status)
	}
	shut.Store(false)
	b = x.settle()
	x.ready(b, "main@sha1:"+next)
	if len(b.Status.Conditions) != 1 {
		t.Errorf("left over: %v", b.Status.Conditions)
	}
	x.holds("a", "two")
}

// One of fifty that is refused keeps back the others, and is the only one that is named.
func TestOneOfFiftyIsRefused(t *testing.T) {
	x := start(t)
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: s-%02d}\nspec: {ports: [{port: %d}]}\n"
	for i := range 50 {
		x.repo.Write(fmt.Sprintf("s-%02d.yaml", i), fmt.Sprintf(service, i, 80))
	}
	x.repo.Write("s-31.yaml", fmt.Sprintf(service, 31, 0))
	hash := x.repo.CommitAll()
	x.create(x.bundle)
	b := x.settle()
	x.failed(b, "Refused", hash, "Service "+x.namespace+"/s-31 (s-31.yaml)", "spec.ports[0].port")
	if _, _, message := condition(b, "Ready"); strings.Count(message, ".yaml)") != 1 {
		t.Errorf("more than one is named: %s", message)
	}
	if x.exists(&corev1.Service{}, "s-00") || x.exists(&corev1.Service{}, "s-49") {
		t.Error("a part of the commit was applied")
	}
	hash = x.repo.Commit("s-31.yaml", fmt.Sprintf(service, 31, 80))
	b = x.settle()
	x.ready(b, "main@sha1:"+hash)
	if len(b.Status.Inventory.Entries) != 50 || !x.exists(&corev1.Service{}, "s-31") {
		t.Errorf("%d of 50 are applied", len(b.Status.Inventory.Entries))
	}
}

// A stored Bundle that can't be read would end the work on all Bundles, so none can be stored (threat G4).
func TestMalformedBundlesAreRefused(t *testing.T) {
	x := start(t)
	for _, value := range []string{"x", "1", "", "99999999999999999999h", "1e9h", "-5m", "1m 5s", "5M", "9223372036854775808ns"} {
		for _, field := range []string{"interval", "timeout", "retryInterval"} {
			b := &unstructured.Unstructured{}
			b.Object, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(x.bundle)
			b.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.BundleKind))
			err := unstructured.SetNestedField(b.Object, value, "spec", field)
			if err == nil {
				err = x.Client.Create(t.Context(), b)
			}
			if err == nil || !strings.Contains(err.Error(), "spec."+field) {
				t.Errorf("spec.%s %q: %v", field, value, err)
			}
		}
	}
	hash := x.repo.Commit("a.yaml", settings("a", "one"))
	x.create(x.bundle)
	x.ready(x.settle(), "main@sha1:"+hash)
	if err := x.Client.List(t.Context(), &v1alpha1.BundleList{}); err != nil {
		t.Error(err)
	}
}
