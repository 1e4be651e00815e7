package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

const (
	// maxLinks is how many links may lead to one file.
	maxLinks = 40
	// maxTarget is the longest target of a link, in bytes.
	maxTarget = 4096
)

// Open opens a file or directory.
func (c commit) Open(name string) (fs.File, error) {
	f, err := c.open(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return f, nil
}

func (c commit) open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, fs.ErrInvalid
	}
	name, e, err := c.find(name)
	if err != nil {
		return nil, err
	}
	info := fileInfo{name: path.Base(name), mode: fs.ModeDir | 0o755}
	switch e.Mode {
	case filemode.Dir:
		tree := c.tree
		if name != "." {
			if tree, err = c.tree.Tree(name); err != nil {
				return nil, err
			}
		}
		return &directory{c, name, info, tree.Entries}, nil
	case filemode.Regular, filemode.Executable, filemode.Deprecated:
		f, err := c.tree.File(name)
		if err != nil {
			return nil, err
		}
		r, err := f.Reader()
		if err != nil {
			return nil, err
		}
		info.mode, info.size = 0o644, f.Size
		return &file{r, info}, nil
	}
	return nil, fmt.Errorf("%w: it is no file and no directory of this repository", fs.ErrNotExist)
}

// find returns where a name leads once its links are followed, and the entry there.
func (c commit) find(name string) (string, object.TreeEntry, error) {
	at, left := ".", strings.Split(name, "/")
	entry := object.TreeEntry{Mode: filemode.Dir}
	for links := 0; len(left) > 0; {
		next := path.Join(at, left[0])
		left = left[1:]
		if next == ".." || strings.HasPrefix(next, "../") {
			return "", entry, fmt.Errorf("%w: a link leads out of the repository", fs.ErrNotExist)
		}
		found, err := c.entry(next)
		if err != nil {
			return "", entry, err
		}
		if found.Mode != filemode.Symlink {
			at, entry = next, found
			continue
		}
		target, err := c.target(found.Hash)
		if links++; err != nil || links > maxLinks || path.IsAbs(target) {
			return "", entry, fmt.Errorf("%w: %s is a link that leads nowhere in the repository", fs.ErrNotExist, next)
		}
		left = append(strings.Split(target, "/"), left...)
	}
	return at, entry, nil
}

func (c commit) entry(name string) (object.TreeEntry, error) {
	if name == "." {
		return object.TreeEntry{Mode: filemode.Dir}, nil
	}
	e, err := c.tree.FindEntry(name)
	if errors.Is(err, object.ErrEntryNotFound) || errors.Is(err, object.ErrDirectoryNotFound) {
		return object.TreeEntry{}, fs.ErrNotExist
	}
	if err != nil {
		return object.TreeEntry{}, err
	}
	return *e, nil
}

func (c commit) target(hash plumbing.Hash) (string, error) {
	blob, err := c.repository.BlobObject(hash)
	if err != nil {
		return "", err
	}
	r, err := blob.Reader()
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(r, maxTarget))
	return string(text), err
}

type file struct {
	io.ReadCloser
	info fileInfo
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }

type directory struct {
	commit  commit
	path    string
	info    fileInfo
	entries []object.TreeEntry
}

func (d *directory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *directory) Close() error               { return nil }
func (d *directory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errors.New("is a directory")}
}

// ReadDir returns the next n entries, all that are left for n ≤ 0.
func (d *directory) ReadDir(n int) ([]fs.DirEntry, error) {
	take := len(d.entries)
	if n > 0 {
		take = min(n, take)
	}
	var out []fs.DirEntry
	for _, e := range d.entries[:take] {
		out = append(out, dirEntry{d, e})
	}
	d.entries = d.entries[take:]
	if n > 0 && take == 0 {
		return nil, io.EOF
	}
	return out, nil
}

// dirEntry is an entry that is opened when it is asked for more than its name.
type dirEntry struct {
	in    *directory
	entry object.TreeEntry
}

func (e dirEntry) Name() string { return e.entry.Name }
func (e dirEntry) IsDir() bool  { return e.Type().IsDir() }
func (e dirEntry) Type() fs.FileMode {
	switch e.entry.Mode {
	case filemode.Dir:
		return fs.ModeDir
	case filemode.Symlink:
		return fs.ModeSymlink
	case filemode.Submodule:
		return fs.ModeIrregular
	}
	return 0
}

// Info is of the link, where it is one.
func (e dirEntry) Info() (fs.FileInfo, error) {
	if t := e.Type(); t == fs.ModeSymlink || t == fs.ModeIrregular {
		return fileInfo{name: e.entry.Name, mode: t}, nil
	}
	return fs.Stat(e.in.commit, path.Join(e.in.path, e.entry.Name))
}

// fileInfo has no time: a commit's files have none.
type fileInfo struct {
	name string
	mode fs.FileMode
	size int64
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) ModTime() time.Time { return time.Time{} }
