package launcher

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"virtstack.io/virtstack/ci/images/debian"
)

// Verify runs the image's programs in a root file system made of nothing but the base, beneath dir: that they start
// shows that no library is missing, that QEMU knows the machine type and its display device that its modules load.
func Verify(ctx context.Context, packages debian.Extracted, dir string) error {
	tree, err := Base(packages)
	if err != nil {
		return err
	}
	root, err := os.MkdirTemp(dir, "launcher-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := tree.Extract(root); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"/usr/sbin/libvirtd", "--version"},
		{"/usr/bin/qemu-img", "--version"},
		{"/usr/bin/qemu-system-x86_64", "-machine", "q35", "-device", "virtio-vga,help"},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Env = "/", []string{"LC_ALL=C"}
		// Only with this root do the programs find their libraries there and nowhere else. It needs root.
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("running %v in the launcher's root: %w\n%s", args, err, out)
		}
	}
	return nil
}
