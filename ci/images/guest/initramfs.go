package guest

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"virtstack.io/virtstack/ci/images/closure"
	"virtstack.io/virtstack/ci/images/rootfs"
)

//go:embed all:rootfs
var files embed.FS

// initramfs returns the guest's whole user space: busybox, dropbear, QEMU's agent, guestd, modules and our few files.
func (b Builder) initramfs() ([]byte, error) {
	tree := rootfs.New()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		tree.Dir("usr/"+dir, 0o755, rootfs.Root)
		tree.Symlink(dir, "usr/"+dir)
	}
	for _, dir := range []string{"proc", "sys", "dev", "run", "mnt", "tmp", "var/log"} {
		tree.Dir(dir, 0o755, rootfs.Root)
	}
	tree.Dir("root", 0o700, rootfs.Root)
	tree.Symlink("var/run", "/run")
	tree.Symlink("init", "/bin/busybox") // which looks at its own name and becomes init
	if err := copyFiles(tree); err != nil {
		return nil, err
	}
	dir := b.Packages.Dir
	if err := closure.Copy(tree, dir, "usr/bin/busybox", "usr/sbin/dropbear", "usr/sbin/qemu-ga"); err != nil {
		return nil, err
	}
	tree.Dir("etc/dropbear", 0o700, rootfs.Root)
	tree.Copy("usr/sbin/guestd", b.Guestd, 0o755)
	m, err := findModules(filepath.Join(dir, "usr/lib/modules"), filepath.Join(dir, "usr/bin/busybox"))
	if err != nil {
		return nil, err
	}
	for _, name := range wantedModules {
		if err := m.add(tree, name); err != nil {
			return nil, err
		}
	}
	tree.File("usr/lib/modules/order", []byte(strings.Join(m.order, "\n")+"\n"), 0o644)
	return pack(tree)
}

// copyFiles adds our own files. What starts with "#!" is a program.
func copyFiles(tree *rootfs.Tree) error {
	return fs.WalkDir(files, "rootfs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		perm := fs.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			perm = 0o755
		}
		if path.Base(name) == "shadow" {
			perm = 0o600
		}
		tree.File(strings.TrimPrefix(name, "rootfs/"), data, perm)
		return nil
	})
}

// pack compresses with zstd, which a guest on an emulated CPU unpacks several times faster than gzip.
func pack(tree *rootfs.Tree) ([]byte, error) {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return nil, err
	}
	if err := tree.CPIO(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compressing the initramfs: %w", err)
	}
	return packed.Bytes(), nil
}
