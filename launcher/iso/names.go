package iso

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// The image has two trees over the same files.
const (
	plainTree  = 0 // ISO 9660 with Rock Ridge
	jolietTree = 1
)

// jolietName is how many characters a name may have in the Joliet tree. The format's own limit is 64; Windows and Linux
// read up to this.
const jolietName = 103

// identify gives each child what the trees call it, and the same to its children. In the plain tree that is a number: what
// reads neither Rock Ridge nor Joliet couldn't show the names in any case.
func (n *node) identify() {
	slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.name, b.name) })
	taken := map[string]bool{}
	for i, c := range n.children {
		c.ids[plainTree] = fmt.Sprintf("F%07d.;1", i)
		if c.dir {
			c.ids[plainTree] = fmt.Sprintf("D%07d", i)
		}
		c.ids[jolietTree] = ucs2(joliet(c.name, taken))
		c.identify()
	}
}

// joliet returns a name that the Joliet tree can hold and that no other has: what isn't allowed in it becomes an
// underscore, a name that is too long or taken ends in a hash.
func joliet(name string, taken map[string]bool) string {
	legal := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r > 0xffff || r == utf8.RuneError || strings.ContainsRune(`*/:;?\`, r) {
			return '_'
		}
		return r
	}, name))
	out := string(legal)
	for salt := 0; len(legal) > jolietName || taken[out]; salt++ {
		h := fnv.New32a()
		fmt.Fprintf(h, "%d %s", salt, name)
		tail := fmt.Sprintf("~%08x", h.Sum32())
		legal = legal[:min(len(legal), jolietName-len(tail))]
		out = string(legal) + tail
	}
	taken[out] = true
	return out
}

// ucs2 is big-endian, as Joliet wants it.
func ucs2(s string) string {
	var out []byte
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u>>8), byte(u))
	}
	return string(out)
}
