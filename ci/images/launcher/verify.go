package launcher

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/ci/images/debian"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// Verify lays the image out beneath dir and has virt-launcher ask libvirt what QEMU can do, which shows that virt-launcher
// finds libvirt's libraries, libvirtd its driver and its data, and QEMU its own. It needs root, for mounts.
func Verify(ctx context.Context, packages debian.Extracted, binary, dir string) error {
	spec, err := Spec(packages, binary)
	if err != nil {
		return err
	}
	var trees []*rootfs.Tree
	for _, l := range spec.Layers {
		trees = append(trees, l.Tree)
	}
	r, err := layOut(dir, trees...)
	if err != nil {
		return err
	}
	defer r.remove()
	r.user = 0 // it becomes the image's user by itself, as on a node
	output := filepath.Join(r.dir, guestv1.RunDir)
	if err := os.Chown(output, guestv1.User, guestv1.User); err != nil {
		return err
	}
	var said bytes.Buffer
	if err := r.run(ctx, &said, &said, "/usr/bin/virt-launcher", "probe", "--output", guestv1.RunDir); err != nil {
		return fmt.Errorf("probing the machine: %w\n%s", err, &said)
	}
	found, err := os.Stat(filepath.Join(output, "domcapabilities-qemu.xml"))
	if err != nil {
		return err
	}
	if s, ok := found.Sys().(*syscall.Stat_t); !ok || s.Uid != guestv1.User {
		return fmt.Errorf("the probe ran as another user than %d", guestv1.User)
	}
	return nil
}

// Suite is a Go test binary, and the directory of golden domains that it reads.
type Suite struct{ Binary, Goldens string }

// Contract lays the image out beneath dir and runs a suite in it, where the libvirt and QEMU that it tests are. It fails
// if a test fails or is skipped, or if there was none. It needs root, for mounts.
func Contract(ctx context.Context, packages debian.Extracted, s Suite, dir string, log io.Writer) error {
	base, err := Base(packages)
	if err != nil {
		return err
	}
	top := rootfs.New()
	top.Copy("usr/bin/contract.test", s.Binary, 0o755)
	if err := top.CopyDir("goldens", s.Goldens); err != nil {
		return err
	}
	r, err := layOut(dir, base, top)
	if err != nil {
		return err
	}
	defer r.remove()
	var out bytes.Buffer
	if err := r.run(ctx, io.MultiWriter(log, &out), log, "/usr/bin/contract.test", "-test.v", "-test.timeout=0", "-goldens=/goldens"); err != nil {
		return err
	}
	return count(out.Bytes(), log)
}
