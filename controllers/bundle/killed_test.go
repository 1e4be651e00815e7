package bundle

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/kube/kubetest/wire"
)

// killed does rounds with a process that is killed at a write, and reports whether it came to that.
func (x *tenant) killed(k *wire.Kill) bool {
	x.t.Helper()
	c := x.process(k.Wrap)
	key := client.ObjectKeyFromObject(x.bundle)
	for range 12 {
		x.now = x.now.Add(2 * time.Second)
		_, err := c.Round(x.t.Context(), key, x.now)
		if k.Killed() {
			return true
		}
		if err != nil {
			x.t.Fatal(err)
		}
	}
	return false
}

// applied returns the names of the ConfigMaps that carry the Bundle's labels.
func (x *tenant) applied() []string {
	x.t.Helper()
	var all corev1.ConfigMapList
	if err := x.Client.List(x.t.Context(), &all, client.InNamespace(x.namespace), client.MatchingLabels(owner(x.bundle).Labels())); err != nil {
		x.t.Fatal(err)
	}
	var names []string
	for i := range all.Items {
		names = append(names, all.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// inventory returns the names in the Bundle's inventory, and whether there is a Bundle.
func (x *tenant) inventory() (names []string, there bool) {
	x.t.Helper()
	b := &v1alpha1.Bundle{}
	err := x.Client.Get(x.t.Context(), client.ObjectKeyFromObject(x.bundle), b)
	if client.IgnoreNotFound(err) != nil {
		x.t.Fatal(err)
	}
	if err == nil && b.Status.Inventory != nil {
		for _, e := range b.Status.Inventory.Entries {
			names = append(names, strings.Split(e.ID, "_")[1])
		}
	}
	slices.Sort(names)
	return names, err == nil
}

// noOrphan checks that whatever is applied is in the inventory, and that nothing else was touched.
func (x *tenant) noOrphan(when string) {
	x.t.Helper()
	recorded, _ := x.inventory()
	for _, name := range x.applied() {
		if !slices.Contains(recorded, name) {
			x.t.Errorf("%s: %s is applied and not in the inventory %v", when, name, recorded)
		}
	}
	if !x.exists(&corev1.ConfigMap{}, "bystander") {
		x.t.Fatalf("%s: an object that is nobody's is gone", when)
	}
}

// Killed at any write of its life, before it or before its answer, a Bundle comes to the same end: all that the commit
// has, nothing that it hasn't, no orphan on the way, and nothing of others removed.
func TestKilledAtAnyWrite(t *testing.T) {
	for name, late := range map[string]bool{"before the write": false, "before its answer": true} {
		t.Run(name, func(t *testing.T) {
			x := start(t)
			x.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "bystander"}})
			points := 0
			for at := 1; x.life(&wire.Kill{At: at, Late: late}, &wire.Kill{At: at, Late: late}, &wire.Kill{At: at, Late: late}); at++ {
				points = at
			}
			if points < 5 {
				t.Errorf("killed at %d writes: too few to have seen an apply and a prune", points)
			}
		})
	}
}

// life is that of one Bundle, killed at its first commit, at one that changes, adds and drops, and at its end. It reports
// whether any of them was killed.
func (x *tenant) life(first, next, end *wire.Kill) (any bool) {
	x.t.Helper()
	when := fmt.Sprintf("write %d", first.At)
	healthy := func(hash string, want ...string) {
		x.t.Helper()
		x.noOrphan(when)
		x.ready(x.settle(), "main@sha1:"+hash)
		recorded, _ := x.inventory()
		if got := x.applied(); !slices.Equal(got, want) || !slices.Equal(recorded, want) {
			x.t.Errorf("%s: applied %v, inventory %v, want %v", when, got, recorded, want)
		}
		x.noOrphan(when)
	}
	x.bundle.ResourceVersion, x.bundle.UID = "", ""
	x.repo.Commit("a.yaml", settings("a", "one"))
	hash := x.repo.Commit("b.yaml", settings("b", when))
	x.create(x.bundle)
	any = x.killed(first)
	healthy(hash, "a", "b")
	x.repo.Commit("a.yaml", settings("a", "two"))
	x.repo.Commit("c.yaml", settings("c", "two"))
	hash = x.drop("b.yaml")
	any = x.killed(next) || any
	healthy(hash, "a", "c")
	x.delete(x.bundle)
	any = x.killed(end) || any
	x.noOrphan(when)
	x.settle()
	if _, there := x.inventory(); there || len(x.applied()) != 0 {
		x.t.Errorf("%s: left after the Bundle's end: %v, Bundle %t", when, x.applied(), there)
	}
	x.drop("c.yaml")
	return any
}
