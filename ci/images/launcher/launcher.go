// Package launcher builds the image of virt-launcher: our program over the parts of Debian's libvirt and QEMU that a
// guest needs, and nothing that could run something else. There is no shell, no package manager and no setuid file.
package launcher

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/ci/images/closure"
	"virtstack.io/virtstack/ci/images/debian"
	"virtstack.io/virtstack/ci/images/oci"
	"virtstack.io/virtstack/ci/images/rootfs"
	"virtstack.io/virtstack/machine/timezone"
)

// Packages is what libvirt and QEMU are taken from.
var Packages = debian.Set{Closure: []string{
	"libvirt-daemon", "libvirt-daemon-driver-qemu", "qemu-system-x86", "qemu-utils", "ovmf",
	"swtpm", "swtpm-tools", "virtiofsd", "tzdata", "tzdata-legacy",
}}

const libraries = "usr/lib/x86_64-linux-gnu/"

// programs come with the libraries they need. The libraries among them are opened by name at run time: libvirt's only
// driver by libvirtd, the others by virt-launcher.
var programs = []string{
	"usr/sbin/libvirtd", "usr/lib/libvirt/libvirt_iohelper",
	libraries + "libvirt/connection-driver/libvirt_driver_qemu.so",
	libraries + "libvirt.so.0", libraries + "libvirt-admin.so.0", libraries + "libvirt-qemu.so.0",
	"usr/bin/qemu-system-x86_64", "usr/bin/qemu-img",
	libraries + "qemu/hw-display-virtio-vga.so", libraries + "qemu/hw-display-virtio-gpu.so", libraries + "qemu/hw-display-virtio-gpu-pci.so",
	// For guests that have a TPM, or file systems of the Pod; a guest without them starts none of it. swtpm_setup makes a
	// new TPM's certificates by the programs after it.
	"usr/bin/swtpm", "usr/bin/swtpm_ioctl", libraries + "swtpm/libswtpm_libtpms.so.0",
	"usr/bin/swtpm_setup", "usr/bin/swtpm_localca", "usr/bin/swtpm_cert", "usr/bin/certtool",
	"usr/libexec/virtiofsd",
}

// data is what they read: CPU models and schemas, firmware, and option ROMs.
var data = []string{
	"usr/share/seabios/bios-256k.bin", "usr/share/seabios/vgabios-stdvga.bin", "usr/share/seabios/vgabios-virtio.bin", "usr/share/seabios/vgabios-bochs-display.bin",
	"usr/share/OVMF/OVMF_CODE_4M.fd", "usr/share/OVMF/OVMF_VARS_4M.fd",
	"usr/share/OVMF/OVMF_CODE_4M.secboot.fd", "usr/share/OVMF/OVMF_VARS_4M.ms.fd",
	"usr/share/qemu/kvmvapic.bin", "usr/share/qemu/linuxboot_dma.bin", "usr/share/qemu/pvh.bin",
	"usr/share/qemu/efi-virtio.rom", "usr/share/qemu/keymaps/en-us",
	"etc/swtpm_setup.conf", "etc/swtpm-localca.conf", "etc/swtpm-localca.options",
}

// zones are the time zones that QEMU may be told to show its guest: without its file a zone is silently UTC.
func zones() []string {
	var files []string
	for _, name := range timezone.Names() {
		files = append(files, "usr/share/zoneinfo/"+name)
	}
	return files
}

var dataDirs = []string{"usr/share/libvirt/cpu_map", "usr/share/libvirt/schemas"}

// mountPoints are there because the root file system is read-only when the Pod runs.
var mountPoints = []string{
	"proc", "sys", "dev", "etc", "run", "tmp", "home",
	guestv1.RunDir, guestv1.DiskDir, guestv1.ImageDir, guestv1.KernelDir, guestv1.StateDir, guestv1.ClaimDir, guestv1.SecretDir,
}

var accounts = map[string]string{
	"etc/passwd":        fmt.Sprintf("root:x:0:0:root:/:/nologin\nqemu:x:%d:%[1]d:qemu:%s:/nologin\n", guestv1.User, guestv1.RunDir),
	"etc/group":         fmt.Sprintf("root:x:0:\nqemu:x:%d:\n", guestv1.User),
	"etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}

// Base returns the part that changes only with Debian's packages.
func Base(packages debian.Extracted) (*rootfs.Tree, error) {
	tree := rootfs.New()
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		tree.Dir("usr/"+dir, 0o755, rootfs.Root)
		tree.Symlink(dir, "usr/"+dir)
	}
	for _, dir := range mountPoints {
		tree.Dir(dir, 0o755, rootfs.Root)
	}
	tree.Dir("tmp", 0o777|fs.ModeSticky, rootfs.Root)
	for name, content := range accounts {
		tree.File(name, []byte(content), 0o644)
	}
	if err := closure.Copy(tree, packages.Dir, slices.Concat(programs, data, zones())...); err != nil {
		return nil, err
	}
	for _, dir := range dataDirs {
		if err := tree.CopyDir(dir, filepath.Join(packages.Dir, dir)); err != nil {
			return nil, fmt.Errorf("copying %s: %w", dir, err)
		}
	}
	return tree, CheckBare(tree)
}

// Spec returns the image: the base, then virt-launcher.
func Spec(packages debian.Extracted, binary string) (oci.Spec, error) {
	base, err := Base(packages)
	if err != nil {
		return oci.Spec{}, fmt.Errorf("putting libvirt and QEMU together: %w", err)
	}
	top := rootfs.New()
	top.Copy("usr/bin/virt-launcher", binary, 0o755)
	user := fmt.Sprintf("%d:%[1]d", guestv1.User)
	return oci.Spec{User: user, Layers: []oci.Layer{{Name: "Debian's libvirt and QEMU", Tree: base}, {Name: "virt-launcher", Tree: top}}}, nil
}

// errNotBare is returned for a tree with something in it that an intruder could use.
var errNotBare = errors.New("must not be in the launcher's image")

// shells and the like: with none of them in the image, a process that was taken over has nothing to run.
var shells = []string{
	"sh", "ash", "bash", "dash", "ksh", "zsh", "busybox", "toybox", "perl", "python3", "apt", "apt-get", "dpkg",
	"mount", "su", "sudo", "wget", "curl", "nc", "ssh",
}

// CheckBare fails if the tree holds a shell, an interpreter, a package manager or a setuid file.
func CheckBare(tree *rootfs.Tree) error {
	for _, e := range tree.Entries() {
		if slices.Contains(shells, path.Base(e.Path)) || e.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			return fmt.Errorf("%s: %w", e.Path, errNotBare)
		}
	}
	return nil
}
