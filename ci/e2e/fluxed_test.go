//go:build e2e

package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"virtstack.io/virtstack/ci/lab"
)

// fluxOnce is Flux for the tests that ask for it: built and started by the first, stopped after the last.
type fluxOnce struct {
	sync.Once
	running *lab.Flux
	err     error
}

var (
	flux fluxOnce

	//go:embed testdata/flux.yaml
	fluxYAML string
	//go:embed testdata/flux-cluster.yaml
	fluxClusterYAML string
)

// start waits for a build from nothing, which takes minutes.
func (f *fluxOnce) start(t *testing.T) {
	t.Helper()
	f.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
		defer cancel()
		f.running, f.err = theLab.StartFlux(ctx, "dev", theLab.Kubeconfig())
	})
	if f.err != nil {
		t.Fatal(f.err)
	}
}

func (f *fluxOnce) stop() error {
	if f.running == nil {
		return nil
	}
	return f.running.Stop()
}

// fluxed is a namespace and a repository that Flux follows, once it is told to.
type fluxed struct{ tenant }

func newFluxed(t *testing.T, name string) fluxed {
	t.Helper()
	f := fluxed{newTenant(t, name)}
	flux.start(t)
	// What Flux applied goes first: a namespace takes its objects in any order, and the Kustomization would outlive the
	// account that it needs to prune.
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		if _, err := theLab.Kubectl(ctx, "delete", "kustomizations.kustomize.toolkit.fluxcd.io", "--all", "-n", f.ns, "--timeout=100s"); err != nil {
			t.Error(err)
		}
	})
	return f
}

// kustomization waits until the Kustomization's Ready condition has the status, and its message and last applied
// revision hold all the texts.
func (f fluxed) kustomization(ready string, limit time.Duration, texts ...string) {
	f.t.Helper()
	k := f.object("kustomize.toolkit.fluxcd.io", "Kustomization")
	f.must(lab.Until(f.t.Context(), limit, fmt.Sprintf("Kustomization with Ready=%s and %q", ready, texts), func(ctx context.Context) (bool, string, error) {
		if err := theLab.Client.Get(ctx, f.key("vms"), k); err != nil {
			return false, "", err
		}
		applied, _, _ := unstructured.NestedString(k.Object, "status", "lastAppliedRevision")
		conditions, _, _ := unstructured.NestedSlice(k.Object, "status", "conditions")
		seen := "no Ready condition"
		for _, c := range conditions {
			c := c.(map[string]any)
			if c["type"] != "Ready" {
				continue
			}
			seen = fmt.Sprintf("%v %v: %v (applied %s)", c["status"], c["reason"], c["message"], applied)
			if c["status"] == ready && containsAll(seen, texts) {
				return true, seen, nil
			}
		}
		return false, seen, nil
	}))
}

// fetched waits until Flux has the commit.
func (f fluxed) fetched(commit string) {
	f.t.Helper()
	g := f.object("source.toolkit.fluxcd.io", "GitRepository")
	f.must(lab.Until(f.t.Context(), time.Minute, "Flux to have commit "+commit, func(ctx context.Context) (bool, string, error) {
		err := theLab.Client.Get(ctx, f.key("vms"), g)
		revision, _, _ := unstructured.NestedString(g.Object, "status", "artifact", "revision")
		return containsAll(revision, []string{commit}), revision, err
	}))
}

// suspended sets or lifts the Kustomization's suspension.
func (f fluxed) suspended(is bool) {
	f.t.Helper()
	_, err := theLab.Kubectl(f.t.Context(), "patch", "kustomizations.kustomize.toolkit.fluxcd.io", "vms", "-n", f.ns, "--type=merge",
		"-p", fmt.Sprintf(`{"spec":{"suspend":%v}}`, is))
	f.must(err)
}

func (f fluxed) object(group, kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	return o
}
