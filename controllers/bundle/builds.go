package bundle

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/kube/release"
)

// builds saves fetching and building a revision again that has not changed. Forgetting it changes nothing but time.
type builds struct {
	mu      sync.Mutex
	made    map[types.NamespacedName]built
	checked map[types.NamespacedName]checked
}

func newBuilds() *builds {
	return &builds{made: map[types.NamespacedName]built{}, checked: map[types.NamespacedName]checked{}}
}

// built is what a Bundle's spec led to at one revision.
type built struct {
	uid        types.UID
	generation int64
	variables  string // a digest of them
	revision   string
	trust      string // of the keys that it was verified with
	objects    []build.Object
}

// largest is how many objects are kept per Bundle.
const largest = 1000

func (b *builds) of(bundle *v1alpha1.Bundle, variables string) built {
	if k := b.last(bundle); k.variables == variables {
		return k
	}
	return built{}
}

// last is what is kept of a Bundle as it is, whatever its variables.
func (b *builds) last(bundle *v1alpha1.Bundle) built {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.made[client.ObjectKeyFromObject(bundle)]; k.uid == bundle.UID && k.generation == bundle.Generation {
		return k
	}
	return built{}
}

func (b *builds) keep(bundle *v1alpha1.Bundle, made built) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(made.objects) > largest {
		delete(b.made, client.ObjectKeyFromObject(bundle))
		return
	}
	made.uid, made.generation = bundle.UID, bundle.Generation
	b.made[client.ObjectKeyFromObject(bundle)] = made
}

func (b *builds) drop(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.made, key)
	delete(b.checked, key)
}

// checked is what a check of a revision came to, for the rounds that follow until it is done: they need not ask again.
type checked struct {
	of      subject
	at      time.Time
	changes release.Changes
}

// subject is what was checked.
type subject struct {
	uid                            types.UID
	generation                     int64
	variables, revision, requested string
}

func subjectOf(r *round) subject {
	b := r.bundle
	return subject{b.UID, b.Generation, r.with, r.seen.Revision, b.Annotations[plan.RequestedAt]}
}

// fresh is how long a check holds: what somebody changes meanwhile is found after that.
const fresh = time.Minute

// changes returns what the last check of the same came to, if that still holds.
func (b *builds) changes(r *round, now time.Time) (release.Changes, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ok := b.checked[client.ObjectKeyFromObject(r.bundle)]
	return c.changes, ok && c.of == subjectOf(r) && now.Sub(c.at) < fresh
}

// remember keeps a check until another takes its place; forget drops it.
func (b *builds) remember(r *round, now time.Time, changes release.Changes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.checked[client.ObjectKeyFromObject(r.bundle)] = checked{subjectOf(r), now, changes}
}

func (b *builds) forget(bundle *v1alpha1.Bundle) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.checked, client.ObjectKeyFromObject(bundle))
}
