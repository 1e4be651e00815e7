package bundle

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/build"
)

// builds saves fetching and building a revision again that has not changed. Forgetting it changes nothing but time.
type builds struct {
	mu   sync.Mutex
	made map[types.NamespacedName]built
}

func newBuilds() *builds { return &builds{made: map[types.NamespacedName]built{}} }

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
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.made[client.ObjectKeyFromObject(bundle)]; k.uid == bundle.UID && k.generation == bundle.Generation && k.variables == variables {
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
}
