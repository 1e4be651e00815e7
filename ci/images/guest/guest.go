// Package guest builds the test guest: a disk that boots by BIOS and by UEFI, with Debian's cloud kernel and an initramfs
// that is its whole user space. Both lie beside it in the image, for machines that boot a kernel of their own. It boots in 128 MiB, logs in on the first serial port, takes an address by DHCP, answers on port 80, applies
// a NoCloud seed and powers off when its button is pressed.
package guest

import (
	"context"
	_ "embed"
	"errors"
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
	Alone:   []string{"systemd-boot-efi"},
	Newest:  []string{"linux-image-cloud-amd64"},
}

// Names of the disk, of the kernel on it and of its initramfs in the image.
const (
	DiskPath   = "disk/disk.qcow2"
	KernelPath = "boot/vmlinuz"
	InitrdPath = "boot/initrd"
)

// owner is the user that QEMU runs as: a containerDisk must be readable for it.
var owner = rootfs.Owner{UID: 107, GID: 107}

// What the two boot loaders read. That of UEFI looks for entries where it was started from.
var (
	//go:embed syslinux.cfg
	biosConfig []byte
	//go:embed efi.conf
	efiConfig []byte
)

// efiLoader is systemd's boot loader in its package.
const efiLoader = "usr/lib/systemd/boot/efi/systemd-bootx64.efi"

// Builder is what the guest is built from.
type Builder struct {
	Packages debian.Extracted
	Guestd   string // the guest's program, built for it
	Work     string // a directory for what is made on the way; the disk stays there
}

// Files are those of the guest's image.
type Files struct{ Disk, Kernel, Initrd string }

// Make makes the guest's disk and returns the files of its image.
func (b Builder) Make(ctx context.Context) (Files, error) {
	initramfs, err := b.initramfs()
	if err != nil {
		return Files{}, fmt.Errorf("making the guest's initramfs: %w", err)
	}
	kernels, err := filepath.Glob(filepath.Join(b.Packages.Dir, "boot", "vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		return Files{}, fmt.Errorf("looking for one kernel, found %q: %w", kernels, err)
	}
	kernel, err1 := os.ReadFile(kernels[0])
	loader, err2 := os.ReadFile(filepath.Join(b.Packages.Dir, efiLoader))
	if err := errors.Join(err1, err2); err != nil {
		return Files{}, err
	}
	disk, err := b.disk(ctx, map[string][]byte{
		"vmlinuz": kernel, "initrd": initramfs, "syslinux.cfg": biosConfig,
		"EFI/BOOT/BOOTX64.EFI": loader, "loader/entries/guest.conf": efiConfig,
	})
	if err != nil {
		return Files{}, fmt.Errorf("making the guest's disk: %w", err)
	}
	made := filepath.Join(filepath.Dir(disk), "files")
	return Files{Disk: disk, Kernel: filepath.Join(made, "vmlinuz"), Initrd: filepath.Join(made, "initrd")}, nil
}

// Spec returns the containerDisk with the disk in it, and the kernel beside it.
func Spec(f Files) (oci.Spec, error) {
	disk, kernel := rootfs.New(), rootfs.New()
	disk.Dir("disk", 0o755, rootfs.Root)
	disk.Copy(DiskPath, f.Disk, 0o440)
	kernel.Dir("boot", 0o755, rootfs.Root)
	kernel.Copy(KernelPath, f.Kernel, 0o440)
	kernel.Copy(InitrdPath, f.Initrd, 0o440)
	if err := errors.Join(disk.Own(DiskPath, owner), kernel.Own(KernelPath, owner), kernel.Own(InitrdPath, owner)); err != nil {
		return oci.Spec{}, err
	}
	return oci.Spec{Layers: []oci.Layer{{Name: "disk", Tree: disk}, {Name: "kernel", Tree: kernel}}}, nil
}
