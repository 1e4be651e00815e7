// Package disk prepares what is behind a guest's disks: an overlay on each containerDisk, empty disks, and seeds. What
// lies in an image is hostile: it is opened beneath its directory, looked at, and refused if it is anything but a plain
// disk image.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/child"
	"virtstack.io/virtstack/launcher/cloudinit"
	"virtstack.io/virtstack/launcher/credential"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/metrics"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/storage"
)

const qemuImg = "/usr/bin/qemu-img"

// volumeName is what a volume's name may be: it becomes the name of files and directories.
var volumeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// Dirs are the launcher's directories; see api/guest/v1.
type Dirs struct {
	// Disks is where this package writes; Images, Secrets and Claims hold one directory per volume, Blocks one device.
	Disks, Images, Secrets, Claims, Blocks string
	// Boot is the image that a kernel is in; State is on the claim for what a machine keeps.
	Boot, State string
	// Credentials holds one directory per Secret of spec.accessCredentials.
	Credentials credential.Secrets
}

// Prepare makes what each volume of a VMI that is a disk needs, unless an earlier call has, and returns the sources by
// volume. What the spec or an image is to blame for is a *field.Error with the path of the volume, of type NotFound
// where it may still come; any other error may be gone the next time.
func (d Dirs) Prepare(ctx context.Context, vmi *v1.VirtualMachineInstance) (map[string]domain.Source, error) {
	sources := map[string]domain.Source{}
	for i := range vmi.Spec.Volumes {
		v, path := &vmi.Spec.Volumes[i], field.NewPath("spec", "volumes").Index(i)
		if !volumeName.MatchString(v.Name) {
			return nil, badName(v.Name, path)
		}
		if v.MemoryDump != nil || isShared(vmi, v.Name) {
			continue
		}
		s, err := d.source(ctx, vmi, v, path)
		if err != nil {
			return nil, err
		}
		sources[v.Name] = s
	}
	return sources, match(vmi, sources)
}

func badName(name string, path *field.Path) *field.Error {
	return field.Invalid(path.Child("name"), name, "must be lower-case letters, digits, dashes and dots, and start and end with a letter or digit")
}

func (d Dirs) source(ctx context.Context, vmi *v1.VirtualMachineInstance, v *v1.Volume, path *field.Path) (domain.Source, error) {
	switch {
	case v.ContainerDisk != nil:
		return d.overlay(ctx, v, path.Child("containerDisk"), d.file(v, ".qcow2"))
	case v.EmptyDisk != nil:
		return empty(ctx, v.EmptyDisk, path.Child("emptyDisk"), d.file(v, ".qcow2"))
	case v.CloudInitNoCloud != nil, v.CloudInitConfigDrive != nil:
		return d.seed(vmi, v, path)
	case v.DownwardMetrics != nil:
		file := d.file(v, ".metrics") // read through the page cache: it changes all the time
		return domain.Source{Path: file, Format: domain.Raw, ReadOnly: true}, metrics.Create(file)
	case v.Ephemeral != nil:
		return d.ephemeral(ctx, v, path.Child("ephemeral"))
	case v.HostDisk != nil:
		return d.hostDisk(v, path.Child("hostDisk"))
	case storage.Claim(v) != "":
		return d.claim(vmi, v, claimPath(v, path))
	}
	return d.data(v, path)
}

// file is what this package makes for a volume.
func (d Dirs) file(v *v1.Volume, ending string) string { return filepath.Join(d.Disks, v.Name+ending) }

// overlay makes the file that takes what the guest writes; the image stays as it is.
func (d Dirs) overlay(ctx context.Context, v *v1.Volume, path *field.Path, file string) (domain.Source, error) {
	disk := v.ContainerDisk
	if p := disk.Path; p != "" && (p != filepath.Clean(p) || !filepath.IsAbs(p) || p == "/") {
		return domain.Source{}, field.Invalid(path.Child("path"), p, "must be the absolute path of a file in the image, such as /disk/disk.img")
	}
	base, err := image(filepath.Join(d.Images, v.Name), disk.Path)
	switch {
	case err != nil && disk.Path != "":
		return domain.Source{}, field.Invalid(path.Child("path"), disk.Path, fmt.Sprintf("image %s: %s", disk.Image, err))
	case err != nil:
		return domain.Source{}, field.Invalid(path.Child("image"), disk.Image, err.Error())
	}
	if err := create(ctx, file, 0, "-F", string(base.Format), "-b", base.Path); err != nil {
		return domain.Source{}, err
	}
	direct := directIO(file) && directIO(base.Path)
	return domain.Source{Path: file, Format: domain.QCOW2, Backing: &base, DirectIO: direct}, nil
}

// empty makes a disk of whole MiB, rounded up.
func empty(ctx context.Context, e *v1.EmptyDiskSource, path *field.Path, file string) (domain.Source, error) {
	size := wholeMiB(e.Capacity.Value())
	if size < storage.MiB {
		return domain.Source{}, field.Invalid(path.Child("capacity"), e.Capacity.String(), "must be more than nothing, such as 1Gi")
	}
	if err := create(ctx, file, size); err != nil {
		return domain.Source{}, err
	}
	return domain.Source{Path: file, Format: domain.QCOW2, DirectIO: directIO(file)}, nil
}

// wholeMiB rounds up.
func wholeMiB(bytes int64) int64 { return (bytes + storage.MiB - 1) / storage.MiB * storage.MiB }

// create makes a qcow2 image with qemu-img unless the file is there; it appears whole or not at all. A size of 0 bytes
// is that of the backing file, which flags name.
func create(ctx context.Context, file string, size int64, flags ...string) error {
	if _, err := os.Lstat(file); err == nil {
		return nil
	}
	part := file + ".part"
	args := append(append([]string{"create", "-q", "-f", "qcow2"}, flags...), part)
	if size > 0 {
		args = append(args, strconv.FormatInt(size, 10))
	}
	if _, err := child.Output(exec.CommandContext(ctx, qemuImg, args...)); err != nil {
		return fmt.Errorf("creating %s: %w", filepath.Base(file), err)
	}
	return os.Rename(part, file)
}

func (d Dirs) seed(vmi *v1.VirtualMachineInstance, v *v1.Volume, path *field.Path) (domain.Source, error) {
	return d.image(v, func() (cloudinit.Seed, error) {
		mounted := secrets{filepath.Join(d.Secrets, v.Name)}
		keys, err := d.Credentials.Seeded(vmi, v)
		if err != nil {
			return cloudinit.Seed{}, err
		}
		machine := cloudinit.Machine{Instance: instance(vmi), Hostname: names.Hostname(vmi), Keys: keys}
		if v.CloudInitConfigDrive != nil {
			seed, err := cloudinit.ConfigDrive(v.CloudInitConfigDrive, mounted, machine)
			return seed, invalid(path.Child("cloudInitConfigDrive"), v.Name, err)
		}
		seed, err := cloudinit.NoCloud(v.CloudInitNoCloud, mounted, machine)
		return seed, invalid(path.Child("cloudInitNoCloud"), v.Name, err)
	})
}

// image makes a volume's ISO image of what content returns, unless it is there; it appears whole or not at all.
func (d Dirs) image(v *v1.Volume, content func() (cloudinit.Seed, error)) (domain.Source, error) {
	file := d.file(v, ".iso")
	done := domain.Source{Path: file, Format: domain.Raw}
	if _, err := os.Lstat(file); err == nil {
		return done, nil
	}
	c, err := content()
	if err != nil {
		return domain.Source{}, err
	}
	part := file + ".part"
	if err := errors.Join(ignoreMissing(os.Remove(part)), c.Write(part)); err != nil {
		return domain.Source{}, err
	}
	return done, os.Rename(part, file)
}

func invalid(path *field.Path, value string, err error) error {
	if err == nil {
		return nil
	}
	refusal := field.Invalid(path, value, err.Error())
	if errors.Is(err, fs.ErrNotExist) { // a Secret, or a key of it, may still come
		refusal.Type = field.ErrorTypeNotFound
	}
	return refusal
}

// instance tells cloud-init whether it has been here before: it stays the same for as long as the machine is the same,
// so that a restart doesn't make new host keys.
func instance(vmi *v1.VirtualMachineInstance) string {
	if fw := vmi.Spec.Domain.Firmware; fw != nil && fw.UUID != "" {
		return string(fw.UUID)
	}
	return string(vmi.UID)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// secrets reads a mounted Secret. The kubelet's own links within the directory are followed, none that leaves it.
type secrets struct{ dir string }

func (s secrets) ReadFile(name string) ([]byte, error) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, cloudinit.Largest+1))
}
