package build

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

var errReadOnly = errors.New("a commit is read-only")

// tree shows the files of a commit to kustomize: rooted at "/", read-only, counted. What was made up for the build
// (a generated kustomization) lies over it.
type tree struct {
	files  fs.FS
	over   map[string][]byte
	cache  map[string][]byte
	bytes  int64
	limits Limits
}

var _ filesys.FileSystem = (*tree)(nil)

func newTree(files fs.FS, limits Limits) *tree {
	return &tree{files: files, over: map[string][]byte{}, cache: map[string][]byte{}, limits: limits}
}

// name turns a path of kustomize's into one of io/fs. It can't lead above the root.
func name(p string) string {
	if p = path.Clean("/" + p)[1:]; p == "" {
		return "."
	}
	return p
}

// ReadFile returns the file's content. Each file counts once.
func (t *tree) ReadFile(p string) ([]byte, error) {
	n := name(p)
	if data, ok := t.over[n]; ok {
		return data, nil
	}
	if data, ok := t.cache[n]; ok {
		return data, nil
	}
	f, err := t.files.Open(n)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: n, Err: errors.New("not a regular file")}
	}
	left := t.limits.Bytes - t.bytes
	data, err := io.ReadAll(io.LimitReader(f, left+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > left || len(t.cache) >= t.limits.Files {
		return nil, fmt.Errorf("%s: the build reads more than %d bytes or %d files", n, t.limits.Bytes, t.limits.Files)
	}
	t.bytes += int64(len(data))
	t.cache[n] = data
	return data, nil
}

// IsDir follows links inside the commit.
func (t *tree) IsDir(p string) bool {
	info, err := fs.Stat(t.files, name(p))
	return err == nil && info.IsDir()
}

// Exists reports whether there is such a file or directory.
func (t *tree) Exists(p string) bool {
	if _, ok := t.over[name(p)]; ok {
		return true
	}
	_, err := fs.Stat(t.files, name(p))
	return err == nil
}

// CleanedAbs splits p into its directory and file.
func (t *tree) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	abs := path.Clean("/" + p)
	if t.IsDir(abs) {
		return filesys.ConfirmedDir(abs), "", nil
	}
	if !t.Exists(abs) {
		return "", "", &fs.PathError{Op: "open", Path: abs, Err: fs.ErrNotExist}
	}
	return filesys.ConfirmedDir(path.Dir(abs)), path.Base(abs), nil
}

// ReadDir lists the names in a directory.
func (t *tree) ReadDir(p string) ([]string, error) {
	entries, err := fs.ReadDir(t.files, name(p))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, nil
}

// Glob is not offered: a kustomization names its files.
func (*tree) Glob(string) ([]string, error) { return nil, errors.New("patterns are not supported") }

// Open is not offered: kustomize reads whole files.
func (*tree) Open(string) (filesys.File, error) { return nil, errors.New("use ReadFile") }

// Walk is not offered either.
func (*tree) Walk(string, filepath.WalkFunc) error { return errors.New("walking is not supported") }

// Create and what follows fail: a commit is read-only.
func (*tree) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir fails.
func (*tree) Mkdir(string) error { return errReadOnly }

// MkdirAll fails.
func (*tree) MkdirAll(string) error { return errReadOnly }

// RemoveAll fails.
func (*tree) RemoveAll(string) error { return errReadOnly }

// WriteFile fails.
func (*tree) WriteFile(string, []byte) error { return errReadOnly }
