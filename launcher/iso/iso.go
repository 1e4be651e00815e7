// Package iso writes ISO 9660 images of a few small files whose names come through as they are: by Rock Ridge for Linux
// and its kind, by Joliet for Windows. The same files give the same bytes.
package iso

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits of what Write takes.
const (
	// MaxFiles is how many files an image may hold.
	MaxFiles = 10_000
	// MaxBytes is how large all files together may be.
	MaxBytes = 64 << 20
	// MaxLabel is how many bytes a label may have; Joliet shows the first 16 characters of it.
	MaxLabel = 32
	// MaxName is how many bytes one part of a name may have; source: NAME_MAX of Linux.
	MaxName = 255
	// MaxDepth is how many parts a name may have; source: ECMA-119 6.8.2.1, less the root.
	MaxDepth = 7
)

// sector is the size of a logical sector and block, in bytes.
const sector = 2048

// ErrName is returned for a name that can't be in an image.
var ErrName = errors.New("must be a relative path without empty, dot or double-dot parts, zero bytes and doubles")

// File is one file of an image.
type File struct {
	// Name is a path with slashes.
	Name    string
	Content []byte
}

// Write writes an image. Files that two names lead to, or a name that is a file and a directory, are refused with
// ErrName.
func Write(w io.Writer, label string, files []File) error {
	if label == "" || len(label) > MaxLabel {
		return fmt.Errorf("label %q: must have 1 to %d bytes", label, MaxLabel)
	}
	root, err := grow(files)
	if err != nil {
		return err
	}
	l := lay(root)
	var head bytes.Buffer
	head.Write(make([]byte, 16*sector)) // the system area
	head.Write(l.primary(label))
	head.Write(l.joliet(label))
	head.Write(terminator())
	for _, part := range l.parts {
		head.Write(padded(part))
	}
	if _, err := w.Write(head.Bytes()); err != nil {
		return err
	}
	for _, n := range l.files {
		if _, err := w.Write(padded(n.content)); err != nil {
			return err
		}
	}
	_, err = w.Write(make([]byte, l.tail*sector))
	return err
}

// padded fills the last sector up; nothing stays nothing.
func padded(b []byte) []byte {
	if over := len(b) % sector; over > 0 {
		return append(slices.Clip(b), make([]byte, sector-over)...)
	}
	return b
}

func sectors(bytes int) uint32 { return uint32((bytes + sector - 1) / sector) }

// node is a file or directory of the image.
type node struct {
	name     string
	parent   *node // the root's is itself
	dir      bool
	content  []byte
	children []*node

	at     uint32           // a file's first sector
	trees  [2]place         // a directory's, by tree
	number [2]uint16        // a directory's, in the path tables
	ids    [2]string        // what each tree calls it
	index  map[string]*node // children by name, while the tree grows
}

// place is where a directory lies.
type place struct {
	at   uint32 // its first sector
	size uint32 // in bytes, whole sectors
}

// grow makes a tree of files.
func grow(files []File) (*node, error) {
	if len(files) > MaxFiles {
		return nil, fmt.Errorf("%d files, at most %d", len(files), MaxFiles)
	}
	root := &node{dir: true, index: map[string]*node{}}
	root.parent = root
	total := 0
	for _, f := range files {
		if total += len(f.Content); total > MaxBytes {
			return nil, fmt.Errorf("more than %d bytes in all files", MaxBytes)
		}
		if err := root.add(f); err != nil {
			return nil, fmt.Errorf("file %.300q: %w", f.Name, err)
		}
	}
	root.identify()
	return root, nil
}

func (n *node) add(f File) error {
	parts := strings.Split(f.Name, "/")
	if len(parts) > MaxDepth {
		return fmt.Errorf("at most %d directories deep: %w", MaxDepth, ErrName)
	}
	for i, part := range parts {
		if part == "" || part == "." || part == ".." || len(part) > MaxName || strings.ContainsRune(part, 0) {
			return ErrName
		}
		last := i == len(parts)-1
		child := n.index[part]
		switch {
		case child == nil:
			child = &node{name: part, parent: n, dir: !last, index: map[string]*node{}}
			n.index[part], n.children = child, append(n.children, child)
		case last || !child.dir:
			return ErrName
		}
		n = child
	}
	n.content = f.Content
	return nil
}
