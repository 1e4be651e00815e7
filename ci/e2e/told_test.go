//go:build e2e

package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/ci/lab"
)

var (
	//go:embed testdata/stories-bundle.yaml
	storiesOfBundles string
	//go:embed testdata/stories-flux.yaml
	storiesOfFlux string
)

// tool is what keeps a repository's objects applied: directories vms, later (which depends on vms) and platform, each
// by an object of that name.
type tool struct {
	setup   string
	applies schema.GroupVersionKind
	reads   schema.GroupVersionKind // what says that the repository can't be read, by the name of vms
}

var (
	byBundle = tool{storiesOfBundles, bundles, bundles}
	byFlux   = tool{storiesOfFlux,
		schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
		schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}}
	bundles = schema.GroupVersionKind{Group: "virtstack.io", Version: "v1alpha1", Kind: "Bundle"}
)

// told is a namespace and a repository in which the same stories are told of each tool.
type told struct {
	tenant
	tool
	door *door
}

func newTold(t *testing.T, name string, by tool) told {
	t.Helper()
	f := told{newTenant(t, name), by, nil}
	if by.applies != bundles {
		flux.start(t)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		for _, what := range [][]string{{by.applies.Kind, "--all"}, {"clusterrolebinding", f.ns + "-platform"}} { // in this order
			if _, err := theLab.Kubectl(ctx, append([]string{"delete", "-n", f.ns, "--timeout=100s", "--ignore-not-found"}, what...)...); err != nil {
				t.Error(err)
			}
		}
	})
	f.door = newDoor(t, f.repo.URL)
	f.repo.URL = f.door.url
	return f
}

// settled waits until the commit is applied, by all.
func (f told) settled(commit string) {
	f.t.Helper()
	for _, name := range []string{"vms", "later", "platform"} {
		f.says(f.applies, name, "True", commit)
	}
}

// says waits until an object's condition Ready has the status, and its message and revisions hold all the texts.
func (f told) says(kind schema.GroupVersionKind, name, ready string, texts ...string) {
	f.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	f.must(lab.Until(f.t.Context(), 2*time.Minute, fmt.Sprintf("%s %s with Ready=%s and %q", kind.Kind, name, ready, texts), func(ctx context.Context) (bool, string, error) {
		if err := theLab.Client.Get(ctx, f.key(name), o); err != nil {
			return false, "", err
		}
		applied, _, _ := unstructured.NestedString(o.Object, "status", "lastAppliedRevision")
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			if c := c.(map[string]any); c["type"] == "Ready" {
				seen := fmt.Sprintf("%v %v: %v (applied %s)", c["status"], c["reason"], c["message"], applied)
				return c["status"] == ready && containsAll(seen, texts), seen, nil
			}
		}
		return false, "no Ready condition", nil
	}))
}

// machines are the VMs of the namespace: UID and version of each.
func (f told) machines() map[string]string {
	f.t.Helper()
	var list v1.VirtualMachineList
	f.must(theLab.Client.List(f.t.Context(), &list, client.InNamespace(f.ns)))
	all := map[string]string{}
	for _, vm := range list.Items {
		all[vm.Name] = string(vm.UID) + " " + vm.ResourceVersion
	}
	return all
}

// untouched fails if anything was made, written or removed since.
func (f told) untouched(since map[string]string) {
	f.t.Helper()
	if now := f.machines(); !maps.Equal(now, since) {
		f.t.Errorf("there were the VMs %v, there are %v", since, now)
	}
}

func (f told) git(args ...string) {
	f.t.Helper()
	_, err := theLab.Run(f.t.Context(), "git", append([]string{"-C", f.repo.Dir}, args...)...)
	f.must(err)
}

// served is the repository on the server's disk.
func (f told) served() string {
	return filepath.Join(theLab.State(), "git", filepath.Base(f.repo.URL))
}

// door is a way to the Git server that can be shut: nothing listens there then.
type door struct {
	t       *testing.T
	addr    string
	url     string
	through http.Handler
	open    *http.Server
}

func newDoor(t *testing.T, repository string) *door {
	t.Helper()
	to, err := url.Parse(repository)
	if err != nil {
		t.Fatal(err)
	}
	path := to.Path
	to.Path = ""
	d := &door{t: t, addr: net.JoinHostPort(lab.HostAddress, "0"), through: &httputil.ReverseProxy{
		Rewrite:  func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ErrorLog: log.New(io.Discard, "", 0), // a door that shuts cuts off who is in it
	}}
	d.unlock()
	t.Cleanup(d.shut)
	d.url = "http://" + d.addr + path
	return d
}

func (d *door) unlock() {
	d.t.Helper()
	l, err := net.Listen("tcp", d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.addr, d.open = l.Addr().String(), &http.Server{Handler: d.through}
	go d.open.Serve(l)
}

func (d *door) shut() {
	if err := d.open.Close(); err != nil {
		d.t.Error(err)
	}
}
