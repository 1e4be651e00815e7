package accepted

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// maxEdits is how many changes one input makes: more give nothing but machines that are wrong in many ways.
const maxEdits = 24

// hostile are values that no author means.
var hostile = []any{
	"", ".", "..", "../../etc/shadow", "/", "/proc/self/environ", "//disk//root.img", "/disk/../../etc/hostname", "a/b", "a\nb", "a\x00b",
	"'/><x y='", "a,b=c", "$(id)", strings.Repeat("x", 300), "-1", "0", "1", "1m", "1e99", "9223372036854775807", "1Ei", "2Mi", "1Gi", "0.5",
	float64(-1), float64(0), float64(1), float64(3), float64(255), float64(65536), float64(1 << 31), true, false, nil, map[string]any{}, []any{},
}

// spot is a place in a tree: how to put another value there, or take it away.
type spot struct {
	path  string // names joined by dots; list entries are *
	value any
	put   func(any)
	drop  func()
}

// spots lists every place below v, in an order that depends on nothing but v.
func spots(path string, v any, found []spot) []spot {
	switch node := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			at := path + "." + key
			found = append(found, spot{at, node[key], func(v any) { node[key] = v }, func() { delete(node, key) }})
			found = spots(at, node[key], found)
		}
	case []any:
		for i, entry := range node {
			found = append(found, spot{path + ".*", entry, func(v any) { node[i] = v }, nil})
			found = spots(path+".*", entry, found)
		}
	}
	return found
}

// corpus is the specs of machines that mutation starts from, and every value that they have at each path.
type corpus struct {
	specs  []map[string]any
	values map[string][]any    // by path
	keys   map[string][]string // of the objects at a path
}

// learn reads the machines of manifests, right and wrong ones: what is wrong in one place is right in another.
func learn(tb testing.TB, patterns ...string) corpus {
	tb.Helper()
	c := corpus{values: map[string][]any{}, keys: map[string][]string{}}
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			tb.Fatalf("found no files %s: %v", pattern, err)
		}
		for _, file := range files {
			c.read(tb, file)
		}
	}
	return c
}

func (c *corpus) read(tb testing.TB, file string) {
	tb.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	for text := range strings.SplitSeq(string(content), "---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		c.add(o)
	}
}

// add takes the machine of a VM, a VMI or a golden file's input.
func (c *corpus) add(o map[string]any) {
	for _, path := range [][]string{{"spec", "template", "spec"}, {"spec"}, {"vmi", "spec"}, {"VMI", "spec"}} {
		spec := o
		for _, key := range path {
			spec, _ = spec[key].(map[string]any)
		}
		if _, is := spec["domain"]; !is {
			continue
		}
		c.specs = append(c.specs, spec)
		for _, s := range spots("", spec, nil) {
			c.values[s.path] = append(c.values[s.path], s.value)
			dot := strings.LastIndexByte(s.path, '.')
			if parent, key := s.path[:dot], s.path[dot+1:]; key != "*" && !slices.Contains(c.keys[parent], key) {
				c.keys[parent] = append(c.keys[parent], key)
			}
		}
		return
	}
}

// machine makes the spec that the bytes of an edit script tell: a machine of the corpus, and four bytes for each change.
func (c *corpus) machine(script []byte) map[string]any {
	if len(script) < 2 {
		return copied(c.specs[0]).(map[string]any)
	}
	spec := copied(c.specs[int(binary.BigEndian.Uint16(script))%len(c.specs)]).(map[string]any)
	for i, edit := range slices.Collect(slices.Chunk(script[2:], 4)) {
		if len(edit) < 4 || i == maxEdits {
			break
		}
		if all := spots("", spec, nil); len(all) > 0 {
			c.change(all[int(binary.BigEndian.Uint16(edit))%len(all)], edit[2], int(edit[3]))
		}
	}
	return spec
}

// change makes one edit at a place.
func (c *corpus) change(at spot, what byte, choice int) {
	node, object := at.value.(map[string]any)
	list, many := at.value.([]any)
	keys := c.keys[at.path]
	switch known := c.values[at.path]; {
	case object && len(keys) > 0 && what%4 != 0:
		key := keys[choice%len(keys)]
		values := c.values[at.path+"."+key]
		node[key] = copied(values[(choice/len(keys)+int(what))%len(values)])
	case many && len(c.values[at.path+".*"]) > 0 && what%4 != 0:
		values := c.values[at.path+".*"]
		at.put(append(slices.Clone(list), copied(values[(choice+int(what))%len(values)])))
	case what%4 == 1 && at.drop != nil:
		at.drop()
	case what%4 == 2:
		at.put(copied(hostile[choice%len(hostile)]))
	case len(known) > 0:
		at.put(copied(known[(choice+int(what)<<2)%len(known)]))
	}
}

// copied is a tree of its own: what JSON makes of v.
func copied(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("not JSON: " + strconv.Quote(err.Error()))
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		panic(err)
	}
	return out
}
