// Package rootfs describes the file tree of an image before it is written: as a tar stream for a layer, as a cpio
// stream for an initramfs, or onto a disk. The same tree always gives the same bytes: paths are sorted, times are zero,
// owners are named by the caller and never taken from the machine that builds.
package rootfs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// Owner is the user and the group of an entry.
type Owner struct{ UID, GID int }

// Root owns everything that has no reason to belong to somebody else.
var Root = Owner{}

// Entry is one file, directory or symlink.
type Entry struct {
	Path  string      // slash-separated, without a leading slash
	Mode  fs.FileMode // type and permissions, with the sticky bit where it is wanted
	Owner Owner
	Link  string // target of a symlink

	data   []byte // content of a file, unless
	source string // it is read from this file of the building machine
}

// Tree is a set of entries; every entry's parents are in it too. The zero value is not usable, see New.
type Tree struct{ entries map[string]Entry }

// New returns an empty tree.
func New() *Tree { return &Tree{entries: map[string]Entry{}} }

// Dir adds a directory, or changes mode and owner of the one that is there.
func (t *Tree) Dir(name string, perm fs.FileMode, o Owner) {
	t.add(Entry{Path: name, Mode: fs.ModeDir | perm, Owner: o})
}

// File adds a file with the content given.
func (t *Tree) File(name string, data []byte, perm fs.FileMode) {
	t.add(Entry{Path: name, Mode: perm, data: data})
}

// Symlink adds a link; target is kept as it is.
func (t *Tree) Symlink(name, target string) {
	t.add(Entry{Path: name, Mode: fs.ModeSymlink | 0o777, Link: target})
}

// Copy adds a file with content from the building machine, which is read when the tree is written.
func (t *Tree) Copy(name, source string, perm fs.FileMode) {
	t.add(Entry{Path: name, Mode: perm, source: source})
}

// Own changes the owner of an entry. It fails if there is no such entry.
func (t *Tree) Own(name string, o Owner) error {
	e, ok := t.entries[clean(name)]
	if !ok {
		return fmt.Errorf("changing the owner of %s: %w", name, fs.ErrNotExist)
	}
	e.Owner = o
	t.entries[e.Path] = e
	return nil
}

// CopyDir adds a directory of the building machine with all that is beneath it. Permissions become 0644 and 0755.
func (t *Tree) CopyDir(name, source string) error {
	return fs.WalkDir(os.DirFS(source), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to, from := path.Join(name, p), path.Join(source, p)
		switch d.Type() {
		case fs.ModeDir:
			t.Dir(to, 0o755, Root)
		case fs.ModeSymlink:
			target, err := os.Readlink(from)
			if err != nil {
				return err
			}
			t.Symlink(to, target)
		default:
			t.Copy(to, from, 0o644)
		}
		return nil
	})
}

// Has reports whether the tree has an entry of that name.
func (t *Tree) Has(name string) bool {
	_, ok := t.entries[clean(name)]
	return ok
}

// Entries returns all entries, parents before children, sorted by path.
func (t *Tree) Entries() []Entry {
	return slices.SortedFunc(maps.Values(t.entries), func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
}

func (t *Tree) add(e Entry) {
	e.Path = clean(e.Path)
	if e.Path == "" {
		return
	}
	for p := path.Dir(e.Path); p != "."; p = path.Dir(p) {
		if _, ok := t.entries[p]; !ok {
			t.entries[p] = Entry{Path: p, Mode: fs.ModeDir | 0o755}
		}
	}
	t.entries[e.Path] = e
}

func clean(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
