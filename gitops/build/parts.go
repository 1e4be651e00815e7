package build

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/kustomize"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// part is how many files of VMs and the like are built at once: kustomize takes the square of their number.
const part = 25

// inParts builds a kustomization that was made up: files of VMs and the like, which kustomize does nothing to, a few at a
// time, and all others together, for it carries names and namespaces from one of those to another. The objects and
// their order are those of the whole. Where they might not be, or where anything is wrong, such as an object that is there
// twice, it gives up: the whole is built, which also tells the error.
func (w *walk) inParts(dir string) ([]Object, bool) {
	alone, rest := w.separate(dir)
	if len(alone) <= part {
		return nil, false
	}
	file := path.Join(dir, konfig.DefaultKustomizationFileName())
	whole := w.over[file]
	defer func() { w.over[file] = whole }()
	var all []Object
	seen := map[string]bool{}
	for _, some := range slices.Concat([][]string{rest}, slices.Collect(slices.Chunk(alone, part))) {
		if len(some) == 0 {
			continue
		}
		built, ok := w.part(dir, file, some, seen)
		if all = append(all, built...); !ok || len(all) > w.limits.Objects {
			return nil, false
		}
	}
	return w.inOrder(dir, all)
}

// separate tells apart the files that kustomize does nothing to; it returns none where a base is among the resources,
// whose names may be others than those in its files.
func (w *walk) separate(dir string) (alone, rest []string) {
	for _, entry := range w.assumed {
		p := path.Join(dir, entry)
		data := w.cache[name(p)]
		switch {
		case w.IsDir(p):
			return nil, nil
		case bytes.Contains(data, []byte("config.kubernetes.io")), bytes.Contains(data, []byte("config.k8s.io")):
			return nil, nil // what kustomize is told by an annotation
		case w.shared[p]:
			rest = append(rest, entry)
		default:
			alone = append(alone, entry)
		}
	}
	return alone, rest
}

// isAlone tells whether kustomize does nothing to objects of a group: it knows no field of theirs, nor any reference to them.
func isAlone(group string) bool {
	return group == "kubevirt.io" || strings.HasSuffix(group, ".kubevirt.io") || group == "virtstack.io"
}

// part builds some of the resources; it fails if an object of theirs was seen before, and notes the others.
func (w *walk) part(dir, file string, some []string, seen map[string]bool) ([]Object, bool) {
	data, err := yaml.Marshal(types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: some, BuildMetadata: []string{types.OriginAnnotations},
	})
	if err != nil {
		return nil, false
	}
	w.over[file] = data
	built, err := kustomize.Build(w.tree, "/"+dir)
	if err != nil {
		return nil, false
	}
	for _, r := range built.Resources() {
		id := r.CurId()
		key := id.Group + "/" + id.Kind + " " + id.EffectiveNamespace() + "/" + id.Name
		if seen[key] {
			return nil, false
		}
		seen[key] = true
	}
	all, err := objects(built, dir, w.keepOrigins)
	return all, err == nil
}

// inOrder sorts objects by their files, as the kustomization lists those.
func (w *walk) inOrder(dir string, all []Object) ([]Object, bool) {
	at := map[string]int{}
	for i, entry := range w.assumed {
		at[path.Join(dir, entry)] = i
	}
	for _, o := range all {
		if _, ok := at[o.File]; !ok {
			return nil, false
		}
	}
	slices.SortStableFunc(all, func(a, b Object) int { return cmp.Compare(at[a.File], at[b.File]) })
	return all, true
}
