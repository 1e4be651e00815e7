package launcher

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/ci/images/debian"
)

// probeScript runs the image's own probe as its own user in a root file system of nothing but the image. The kernel's
// file systems are mounted as in a Pod, for this process tree alone: they are gone with the last of it.
const probeScript = `set -e
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp
exec chroot --userspec="$2:$2" . /usr/bin/virt-launcher probe --output "$3"
`

// Verify lays the image out beneath dir and has virt-launcher ask libvirt what QEMU can do, which shows that virt-launcher
// finds libvirt's libraries, libvirtd its driver and its data, and QEMU its own. It needs root, for mounts.
func Verify(ctx context.Context, packages debian.Extracted, binary, dir string) error {
	spec, err := Spec(packages, binary)
	if err != nil {
		return err
	}
	root, err := os.MkdirTemp(dir, "launcher-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	for _, l := range spec.Layers {
		if err := l.Tree.Extract(root); err != nil {
			return err
		}
	}
	if err := os.Chmod(root, 0o755); err != nil { // that of a temporary directory is for its owner only
		return err
	}
	output := filepath.Join(root, guestv1.RunDir)
	if err := os.Chown(output, guestv1.User, guestv1.User); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation", "private", "sh", "-c", probeScript, "sh", root, strconv.Itoa(guestv1.User), guestv1.RunDir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("probing the machine from within the image: %w\n%s", err, out)
	}
	_, err = os.Stat(filepath.Join(output, "domcapabilities-qemu.xml"))
	return err
}
