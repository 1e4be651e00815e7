package launcher

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
	output := filepath.Join(r.dir, guestv1.RunDir)
	if err := os.Chown(output, guestv1.User, guestv1.User); err != nil {
		return err
	}
	var said bytes.Buffer
	if err := r.run(ctx, &said, &said, "/usr/bin/virt-launcher", "probe", "--output", guestv1.RunDir); err != nil {
		return fmt.Errorf("probing the machine: %w\n%s", err, &said)
	}
	_, err = os.Stat(filepath.Join(output, "domcapabilities-qemu.xml"))
	return err
}

// Contract lays the image out beneath dir and runs a Go test binary in it, where the libvirt and QEMU that it tests
// are. It fails if a test fails or is skipped, or if there was none. It needs root, for mounts.
func Contract(ctx context.Context, packages debian.Extracted, binary, dir string, log io.Writer) error {
	base, err := Base(packages)
	if err != nil {
		return err
	}
	top := rootfs.New()
	top.Copy("usr/bin/contract.test", binary, 0o755)
	r, err := layOut(dir, base, top)
	if err != nil {
		return err
	}
	defer r.remove()
	var out bytes.Buffer
	if err := r.run(ctx, io.MultiWriter(log, &out), log, "/usr/bin/contract.test", "-test.v", "-test.timeout=0"); err != nil {
		return err
	}
	return count(out.Bytes(), log)
}
