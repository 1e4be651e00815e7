package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/node"
)

// importImages keeps the archives with the cluster's images, under their file names, and imports them into every node
// that runs. An archive that a node has already is skipped.
func importImages(ctx context.Context, d layout.Dir, out io.Writer, args []string) error {
	return locked(d, out, func() error {
		for _, file := range args {
			if err := keep(file, filepath.Join(d.Images(), filepath.Base(file))); err != nil {
				return fmt.Errorf("keeping %s: %w", file, err)
			}
		}
		for n, id := range node.Running(d) {
			count, err := node.ImportAll(ctx, d, n, id)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: %d images imported\n", n.Name(), count)
		}
		return nil
	})
}

// keep copies an archive unless the same one, by size and time, is there.
func keep(from, to string) error {
	fi, err := os.Stat(from)
	if err != nil {
		return err
	}
	old, err := os.Stat(to)
	if err == nil && (os.SameFile(fi, old) || old.Size() == fi.Size() && old.ModTime().Equal(fi.ModTime())) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), ".import-")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // gone once it is renamed
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	if err := os.Chtimes(out.Name(), fi.ModTime(), fi.ModTime()); err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}
