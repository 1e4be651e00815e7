package iso

import (
	"encoding/binary"
	"slices"
	"strings"
)

// firstFree is the sector after the system area and the three descriptors.
const firstFree = 16 + 3

// layout is where everything lies.
type layout struct {
	root  *node
	dirs  [2][]*node // in the order of each tree's path table
	files []*node    // with content, in the order in which they lie
	parts [][]byte   // whole sectors before the files: path tables, directories, continuations
	table [2]tables
	total uint32 // sectors of the whole image
	tail  int    // of them, empty ones at the end
}

// tables are a tree's path tables: little-endian, then big-endian.
type tables struct {
	at   [2]uint32
	size uint32 // of each, in bytes
}

func lay(root *node) *layout {
	l := &layout{root: root}
	free := uint32(firstFree)
	for tree := range l.dirs {
		l.dirs[tree] = walk(root, tree)
		l.table[tree].size = uint32(len(l.pathTable(tree, binary.LittleEndian)))
		for i := range l.table[tree].at {
			l.table[tree].at[i] = free
			free += sectors(int(l.table[tree].size))
		}
	}
	for tree, dirs := range l.dirs {
		for _, d := range dirs {
			size := (&directory{node: d, tree: tree}).size()
			d.trees[tree] = place{free, size}
			free += size / sector
		}
	}
	rest := &continuations{at: free}
	for _, d := range l.dirs[plainTree] { // for its size alone: where things lie doesn't change it
		(&directory{node: d, tree: plainTree, rest: rest}).bytes()
	}
	free += sectors(len(rest.data))
	free = l.place(free)
	l.tail = int(free % 2) // 4 KiB, the largest block that direct IO asks for
	l.total = free + uint32(l.tail)
	l.write(rest.at)
	return l
}

// place lays the files down and returns the first sector after them.
func (l *layout) place(free uint32) uint32 {
	for _, d := range l.dirs[plainTree] {
		for _, c := range d.children {
			if c.dir || len(c.content) == 0 {
				continue
			}
			c.at, l.files = free, append(l.files, c)
			free += sectors(len(c.content))
		}
	}
	return free
}

// write fills parts, in the order of their sectors.
func (l *layout) write(continued uint32) {
	for tree := range l.dirs {
		l.parts = append(l.parts, l.pathTable(tree, binary.LittleEndian), l.pathTable(tree, binary.BigEndian))
	}
	rest := &continuations{at: continued}
	for tree, dirs := range l.dirs {
		for _, d := range dirs {
			l.parts = append(l.parts, (&directory{node: d, tree: tree, rest: rest}).bytes())
		}
	}
	l.parts = append(l.parts, rest.data)
}

// walk returns the directories of a tree level by level, within a level by parent and then by identifier, and numbers
// them so.
func walk(root *node, tree int) []*node {
	all := []*node{root}
	for i := 0; i < len(all); i++ {
		all[i].number[tree] = uint16(i + 1)
		for _, c := range ordered(all[i], tree) {
			if c.dir {
				all = append(all, c)
			}
		}
	}
	return all
}

// ordered returns the children of a directory by what the tree calls them.
func ordered(d *node, tree int) []*node {
	list := slices.Clone(d.children)
	slices.SortFunc(list, func(a, b *node) int { return strings.Compare(a.ids[tree], b.ids[tree]) })
	return list
}

// pathTable is ECMA-119 9.4, one record for each directory.
func (l *layout) pathTable(tree int, order binary.AppendByteOrder) []byte {
	var out []byte
	for _, d := range l.dirs[tree] {
		id := d.ids[tree]
		if d == l.root {
			id = "\x00"
		}
		out = append(out, byte(len(id)), 0)
		out = order.AppendUint32(out, d.trees[tree].at)
		out = order.AppendUint16(out, d.parent.number[tree])
		out = append(out, id...)
		if len(id)%2 == 1 {
			out = append(out, 0)
		}
	}
	return out
}
