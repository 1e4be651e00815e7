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
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/machine/names"
)

// mib is the unit in which guests' disks are sized.
const mib = 1 << 20

const qemuImg = "/usr/bin/qemu-img"

// volumeName is what a volume's name may be: it becomes the name of files and directories.
var volumeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// Dirs are the launcher's directories; see api/guest/v1.
type Dirs struct {
	// Disks is where this package writes; Images and Secrets hold one directory per volume.
	Disks, Images, Secrets string
}

// Prepare makes what each volume of a VMI needs, unless an earlier call has, and returns the sources of its disks by
// volume. What the spec or an image is to blame for is a *field.Error with the path of the volume; any other error may
// be gone the next time.
func (d Dirs) Prepare(ctx context.Context, vmi *v1.VirtualMachineInstance) (map[string]domain.Source, error) {
	sources := map[string]domain.Source{}
	for i := range vmi.Spec.Volumes {
		v, path := &vmi.Spec.Volumes[i], field.NewPath("spec", "volumes").Index(i)
		if !volumeName.MatchString(v.Name) {
			return nil, field.Invalid(path.Child("name"), v.Name, "must be lower-case letters, digits, dashes and dots, and start and end with a letter or digit")
		}
		s, err := d.source(ctx, vmi, v, path)
		if err != nil {
			return nil, err
		}
		sources[v.Name] = s
	}
	return sources, nil
}

func (d Dirs) source(ctx context.Context, vmi *v1.VirtualMachineInstance, v *v1.Volume, path *field.Path) (domain.Source, error) {
	file := filepath.Join(d.Disks, v.Name)
	switch {
	case v.ContainerDisk != nil:
		return d.overlay(ctx, v, path.Child("containerDisk"), file+".qcow2")
	case v.EmptyDisk != nil:
		return empty(ctx, v.EmptyDisk, path.Child("emptyDisk"), file+".qcow2")
	case v.CloudInitNoCloud != nil:
		return d.seed(vmi, v, path.Child("cloudInitNoCloud"), file+".iso")
	}
	return domain.Source{}, field.Invalid(path, v.Name, "its kind is not supported yet: use containerDisk, emptyDisk or cloudInitNoCloud")
}

// overlay makes the file that takes what the guest writes; the image stays as it is.
func (d Dirs) overlay(ctx context.Context, v *v1.Volume, path *field.Path, file string) (domain.Source, error) {
	disk := v.ContainerDisk
	if p := disk.Path; p != "" && (p != filepath.Clean(p) || !filepath.IsAbs(p) || p == "/") {
		return domain.Source{}, field.Invalid(path.Child("path"), p, "must be the absolute path of a file in the image, such as /disk/disk.img")
	}
	base, err := image(filepath.Join(d.Images, v.Name), disk.Path)
	if err != nil {
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
	size := (e.Capacity.Value() + mib - 1) / mib * mib
	if size < mib {
		return domain.Source{}, field.Invalid(path.Child("capacity"), e.Capacity.String(), "must be more than nothing, such as 1Gi")
	}
	if err := create(ctx, file, size); err != nil {
		return domain.Source{}, err
	}
	return domain.Source{Path: file, Format: domain.QCOW2, DirectIO: directIO(file)}, nil
}

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

func (d Dirs) seed(vmi *v1.VirtualMachineInstance, v *v1.Volume, path *field.Path, file string) (domain.Source, error) {
	done := domain.Source{Path: file, Format: domain.Raw, DirectIO: false}
	if _, err := os.Lstat(file); err == nil {
		return done, nil
	}
	seed, err := cloudinit.From(v.CloudInitNoCloud, secrets{filepath.Join(d.Secrets, v.Name)}, instance(vmi), names.Hostname(vmi))
	if err != nil {
		return domain.Source{}, field.Invalid(path, v.Name, err.Error())
	}
	part := file + ".part"
	if err := errors.Join(ignoreMissing(os.Remove(part)), seed.Write(part, d.Disks)); err != nil {
		return domain.Source{}, err
	}
	return done, os.Rename(part, file)
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
