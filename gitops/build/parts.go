package build

import (
	"bytes"
	"cmp"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// part is how many objects of VMs and the like are built at once: kustomize takes the square of their number.
const part = 25

// inParts builds VMs and the like, of which kustomize changes each by itself if at all, a few at a time, and all others
// together, for it carries names and namespaces from one of those to another. The objects and their order are those of
// the whole. Where they might not be, or where anything is wrong, such as an object that is there twice, it gives up: the
// whole is built, which also tells the error.
func (w *walk) inParts(dir string) ([]Object, bool) {
	if !separable(w.root) {
		return nil, false
	}
	alone, rest := w.separate(dir)
	parts := w.grouped(dir, alone)
	if len(parts) < 2 {
		return nil, false
	}
	whole := w.over[w.file]
	defer func() { w.over[w.file] = whole }()
	var all []Object
	seen := map[string]bool{}
	for _, some := range slices.Concat([][]string{rest}, parts) {
		if len(some) == 0 {
			continue
		}
		built, ok := w.part(dir, some, seen)
		if all = append(all, built...); !ok || len(all) > w.limits.Objects {
			return nil, false
		}
	}
	return w.inOrder(dir, all)
}

// separable tells whether a kustomization has nothing but what is done to each object by itself: a patch without a
// target fails where its object isn't.
func separable(k types.Kustomization) bool {
	for _, p := range k.Patches {
		if p.Target == nil {
			return false
		}
	}
	k.TypeMeta, k.MetaData, k.Resources, k.BuildMetadata = types.TypeMeta{}, nil, nil, nil
	k.Namespace, k.NamePrefix, k.NameSuffix = "", "", ""
	k.Patches, k.Images, k.Labels, k.CommonAnnotations = nil, nil, nil, nil
	return reflect.DeepEqual(k, types.Kustomization{})
}

// separate tells apart the files that kustomize does nothing to for others; it returns none where a base is among the
// resources, whose names may be others than those in its files.
func (w *walk) separate(dir string) (alone, rest []string) {
	for _, entry := range w.root.Resources {
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
			alone = append(alone, w.documents(entry, p)...)
		}
	}
	return alone, rest
}

// documents returns entry, or where it has more than a part's documents files that have a few of them each. They are
// only here, and under names that no repository has: with a zero byte in them.
func (w *walk) documents(entry, file string) []string {
	var pieces [][]byte
	for line := range bytes.Lines(w.cache[name(file)]) {
		text := bytes.TrimRight(line, " \t\r\n")
		switch {
		case bytes.HasPrefix(line, []byte("%")), bytes.Equal(text, []byte("...")):
			return []string{entry} // a directive may hold for what follows
		case bytes.Equal(text, []byte("---")) || len(pieces) == 0:
			pieces = append(pieces, nil)
		}
		last := len(pieces) - 1
		pieces[last] = append(pieces[last], line...)
	}
	if len(pieces) <= part {
		return []string{entry}
	}
	var all []string
	for some := range slices.Chunk(pieces, part) {
		if content := bytes.Join(some, nil); !bytes.Equal(bytes.Trim(content, "-\n"), nil) {
			n := entry + "\x00" + strconv.Itoa(len(all))
			w.over[name(file+"\x00"+strconv.Itoa(len(all)))] = content
			all = append(all, n)
		}
	}
	return all
}

// grouped returns files together that have a part's objects, or the one file that has as many.
func (w *walk) grouped(dir string, files []string) (parts [][]string) {
	room := 0
	for _, f := range files {
		n := part
		if real(f) == f {
			n = w.count[path.Join(dir, f)]
		}
		if room -= n; room < 0 {
			parts, room = append(parts, nil), part-n
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], f)
	}
	return parts
}

// real is the file that one made by documents is of.
func real(file string) string {
	file, _, _ = strings.Cut(file, "\x00")
	return file
}

// isAlone tells whether kustomize does nothing to objects of a group: it knows no field of theirs, nor any reference to them.
func isAlone(group string) bool {
	return group == "kubevirt.io" || strings.HasSuffix(group, ".kubevirt.io") || group == "virtstack.io"
}

// part builds some of the resources; it fails if an object of theirs was seen before, and notes the others.
func (w *walk) part(dir string, some []string, seen map[string]bool) ([]Object, bool) {
	k := w.root
	k.Resources = some
	data, err := yaml.Marshal(k)
	if err != nil {
		return nil, false
	}
	w.over[w.file] = data
	built, err := w.run(dir)
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
	all, err := w.objects(built, dir)
	return all, err == nil
}

// inOrder sorts objects by their files, as the kustomization lists those.
func (w *walk) inOrder(dir string, all []Object) ([]Object, bool) {
	at := map[string]int{}
	for i, entry := range w.root.Resources {
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
