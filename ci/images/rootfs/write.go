package rootfs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// open returns the content of a file and its size in bytes.
func (e Entry) open() (io.ReadCloser, int64, error) {
	if e.source == "" {
		return io.NopCloser(bytes.NewReader(e.data)), int64(len(e.data)), nil
	}
	f, err := os.Open(e.source)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// Tar writes the tree as a tar stream, the form of an image layer.
func (t *Tree) Tar(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, e := range t.Entries() {
		if err := e.tar(out); err != nil {
			return fmt.Errorf("writing %s to a layer: %w", e.Path, err)
		}
	}
	return out.Close()
}

func (e Entry) tar(out *tar.Writer) error {
	h := &tar.Header{Name: e.Path, Mode: int64(e.Mode.Perm()), Uid: e.Owner.UID, Gid: e.Owner.GID, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	if e.Mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch e.Mode.Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, e.Path+"/"
		return out.WriteHeader(h)
	case fs.ModeSymlink:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		return out.WriteHeader(h)
	}
	content, size, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	h.Typeflag, h.Size = tar.TypeReg, size
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return err
}

// Extract writes the tree into a directory, which is made if it is missing. Owners are those of the caller.
func (t *Tree) Extract(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, e := range t.Entries() {
		if err := e.extract(filepath.Join(dir, filepath.FromSlash(e.Path))); err != nil {
			return fmt.Errorf("extracting %s: %w", e.Path, err)
		}
	}
	return nil
}

func (e Entry) extract(to string) error {
	switch e.Mode.Type() {
	case fs.ModeDir:
		return os.MkdirAll(to, e.Mode.Perm())
	case fs.ModeSymlink:
		return os.Symlink(e.Link, to)
	}
	content, _, err := e.open()
	if err != nil {
		return err
	}
	defer content.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, e.Mode.Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, content); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
