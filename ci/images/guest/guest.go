// Package guest builds the test guest: a BIOS disk with Debian's cloud kernel and an initramfs that is its whole user
// space. It boots in 128 MiB, logs in on the first serial port, takes an address by DHCP, answers on port 80, applies
// a NoCloud seed and powers off when its button is pressed.
package guest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"virtstack.io/virtstack/ci/images/debian"
	"virtstack.io/virtstack/ci/images/oci"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// Packages is what the guest and the tools that make its disk are taken from.
var Packages = debian.Set{
	Closure: []string{"busybox-static", "dropbear-bin", "qemu-guest-agent", "dosfstools", "mtools", "syslinux", "syslinux-common", "qemu-utils", "qemu-system-x86"},
	Newest:  []string{"linux-image-cloud-amd64"},
}

// DiskPath is the disk's name in the image.
const DiskPath = "disk/disk.qcow2"

// owner is the user that QEMU runs as: a containerDisk must be readable for it.
var owner = rootfs.Owner{UID: 107, GID: 107}

//go:embed syslinux.cfg
var bootConfig []byte

// Builder is what the guest is built from.
type Builder struct {
	Packages debian.Extracted
	Guestd   string // the guest's program, built for it
	Work     string // a directory for what is made on the way; the disk stays there
}

// Disk makes the guest's disk and returns its file.
func (b Builder) Disk(ctx context.Context) (string, error) {
	initramfs, err := b.initramfs()
	if err != nil {
		return "", fmt.Errorf("making the guest's initramfs: %w", err)
	}
	kernels, err := filepath.Glob(filepath.Join(b.Packages.Dir, "boot", "vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		return "", fmt.Errorf("looking for one kernel, found %q: %w", kernels, err)
	}
	kernel, err := os.ReadFile(kernels[0])
	if err != nil {
		return "", err
	}
	disk, err := b.disk(ctx, map[string][]byte{"vmlinuz": kernel, "initrd": initramfs, "syslinux.cfg": bootConfig})
	if err != nil {
		return "", fmt.Errorf("making the guest's disk: %w", err)
	}
	return disk, nil
}

// Spec returns the containerDisk with the disk in it.
func Spec(disk string) (oci.Spec, error) {
	tree := rootfs.New()
	tree.Dir("disk", 0o755, rootfs.Root)
	tree.Copy(DiskPath, disk, 0o440)
	if err := tree.Own(DiskPath, owner); err != nil {
		return oci.Spec{}, err
	}
	return oci.Spec{Layers: []oci.Layer{{Name: "disk", Tree: tree}}}, nil
}
