package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"virtstack.io/virtstack/ci/images/closure"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// diskBytes is the size of the guest's disk: kernel and initramfs fill two thirds of it.
const diskBytes = 32 << 20

// toolFiles is what makes the disk. The conversion of character sets is for mtools, which takes file names for those of
// code page 850.
var toolFiles = []string{
	"usr/sbin/mkfs.fat", "usr/bin/mtools", "usr/bin/mcopy", "usr/bin/mattrib", "usr/bin/mmove", "usr/bin/syslinux",
	"usr/bin/qemu-img", "usr/bin/busybox",
	"usr/lib/x86_64-linux-gnu/gconv/IBM850.so", "usr/lib/x86_64-linux-gnu/gconv/gconv-modules",
	"usr/lib/x86_64-linux-gnu/gconv/gconv-modules.d/gconv-modules-extra.conf",
}

func (b Builder) diskFile() string { return filepath.Join(b.Work, "root", "disk.qcow2") }

// disk makes a FAT file system of the files, with the boot loader in it, and converts it to qcow2. The programs for
// that come from the same packages and see only a directory of their own: nothing of the machine is changed.
func (b Builder) disk(ctx context.Context, files map[string][]byte) (string, error) {
	root := filepath.Dir(b.diskFile())
	if err := os.RemoveAll(root); err != nil {
		return "", err
	}
	tools := rootfs.New()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		tools.Dir("usr/"+dir, 0o755, rootfs.Root)
		tools.Symlink(dir, "usr/"+dir)
	}
	if err := closure.Copy(tools, b.Packages.Dir, toolFiles...); err != nil {
		return "", err
	}
	tools.Symlink("usr/bin/sh", "busybox") // syslinux runs mtools by it
	for _, dir := range []string{"tmp", "proc"} {
		tools.Dir(dir, 0o755, rootfs.Root)
	}
	tools.File("dev/null", nil, 0o666) // a plain file will do
	tools.File("disk.raw", make([]byte, diskBytes), 0o644)
	for name, data := range files {
		tools.File("files/"+name, data, 0o644)
	}
	if err := tools.Extract(root); err != nil {
		return "", err
	}
	return b.diskFile(), runTools(ctx, root)
}

// script makes the disk. The boot loader's installer opens its disk through /proc.
const script = `set -e
busybox mount -t proc proc /proc
mkfs.fat --invariant -n GUEST /disk.raw
mcopy -s -i /disk.raw /files/* ::/
syslinux --install /disk.raw
qemu-img convert -f raw -O qcow2 -c /disk.raw /disk.qcow2
`

func runTools(ctx context.Context, root string) error {
	cmd := exec.CommandContext(ctx, "/usr/bin/busybox", "sh", "-c", script)
	cmd.Dir = "/"
	// mtools stamps files with the time; that of the epoch is before FAT's first year.
	cmd.Env = []string{"PATH=/usr/bin:/usr/sbin", "SOURCE_DATE_EPOCH=946684800", "TZ=UTC"}
	// With their own root the programs find their own loader and libraries; /proc is mounted for them alone and is gone
	// with the last of them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Unshareflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running the disk's tools (this needs root, for chroot): %w\n%s", err, out)
	}
	return nil
}
