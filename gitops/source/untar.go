package source

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const (
	// maxPath is the longest path of a file in an archive, in bytes.
	maxPath = 1024
	// maxHead is what an entry takes beside its content, in bytes: two headers, a long path and what fills up blocks.
	maxHead = 4096
)

// save writes what is read to a file in dir, within the budget, and returns its name.
func save(dir string, r io.Reader, left *budget) (string, error) {
	f, err := os.Create(filepath.Join(dir, "archive"))
	if err != nil {
		return "", err
	}
	_, err = io.Copy(boundedWriter{f, left}, r)
	return f.Name(), errors.Join(err, f.Close())
}

type boundedWriter struct {
	io.Writer
	left *budget
}

func (w boundedWriter) Write(p []byte) (int, error) {
	if err := w.left.write(len(p)); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// unpack writes the files of a gzipped tar. It refuses a path or link that leads out, and whatever is no file,
// directory or symbolic link.
func unpack(archive string, into bounded) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%w: it is no gzipped tar: %w", ErrRefused, err)
	}
	l := into.left.limits
	all := boundedBody{z, &budget{limits: Limits{Bytes: l.Bytes + maxHead*int64(l.Files)}}} // entries that write nothing count too
	u := unpacker{into, map[string]bool{".": true}}
	if err := into.MkdirAll(".", 0o755); err != nil {
		return err
	}
	for t := tar.NewReader(all); ; {
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = u.entry(h, t)
		}
		if err != nil && !errors.Is(err, ErrRefused) {
			return fmt.Errorf("%w: reading the gzipped tar: %w", ErrRefused, err)
		}
		if err != nil {
			return err
		}
	}
}

type unpacker struct {
	into bounded
	dirs map[string]bool
}

func (u unpacker) entry(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	if name == "" {
		name = "."
	}
	if len(name) > maxPath || !filepath.IsLocal(name) || strings.ContainsAny(name, "\\\x00") {
		return fmt.Errorf("%w: the path %.80q is not one beneath the archive's root, or too long", ErrRefused, h.Name)
	}
	name = path.Clean(name)
	if h.Typeflag == tar.TypeDir {
		return u.directory(name)
	}
	if err := u.directory(path.Dir(name)); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.file(name, content)
	case tar.TypeSymlink:
		return u.into.Symlink(h.Linkname, name)
	}
	return fmt.Errorf("%w: %s is no file, directory or symbolic link", ErrRefused, name)
}

// directory counts each directory that it makes.
func (u unpacker) directory(name string) error {
	for at := name; !u.dirs[at]; at = path.Dir(at) {
		if err := u.into.left.create(); err != nil {
			return err
		}
		u.dirs[at] = true
	}
	return u.into.MkdirAll(name, 0o755)
}

func (u unpacker) file(name string, content io.Reader) error {
	f, err := u.into.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
