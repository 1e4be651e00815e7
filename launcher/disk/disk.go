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
	"strconv"
	"strings"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/child"
	"virtstack.io/virtstack/launcher/cloudinit"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/machine/names"
)

// mib is the unit in which guests' disks are sized.
const mib = 1 << 20

// Dirs are the launcher's directories; see api/guest/v1.
type Dirs struct {
	// Disks is where this package writes; Images and Secrets hold one directory per volume.
	Disks, Images, Secrets string
}

// Prepare makes what each volume of a VMI needs, unless an earlier call has, and returns the sources of its disks by
// volume. An error names the volume.
func (d Dirs) Prepare(ctx context.Context, vmi *v1.VirtualMachineInstance) (map[string]domain.Source, error) {
	sources := map[string]domain.Source{}
	for i := range vmi.Spec.Volumes {
		v := &vmi.Spec.Volumes[i]
		if v.Name != filepath.Base(v.Name) || strings.HasPrefix(v.Name, ".") {
			return nil, fmt.Errorf("spec.volumes[%d].name: %q is no name", i, v.Name)
		}
		s, err := d.source(ctx, vmi, v)
		if err != nil {
			return nil, fmt.Errorf("preparing volume %q: %w", v.Name, err)
		}
		sources[v.Name] = s
	}
	return sources, nil
}

func (d Dirs) source(ctx context.Context, vmi *v1.VirtualMachineInstance, v *v1.Volume) (domain.Source, error) {
	path := filepath.Join(d.Disks, v.Name)
	switch {
	case v.ContainerDisk != nil:
		return d.overlay(ctx, v, path+".qcow2")
	case v.EmptyDisk != nil:
		return empty(ctx, v.EmptyDisk, path+".qcow2")
	case v.CloudInitNoCloud != nil:
		return d.seed(vmi, v, path+".iso")
	}
	return domain.Source{}, errors.New("not supported yet; use containerDisk, emptyDisk or cloudInitNoCloud")
}

// overlay makes the file that takes what the guest writes; the image stays as it is.
func (d Dirs) overlay(ctx context.Context, v *v1.Volume, path string) (domain.Source, error) {
	base, err := image(filepath.Join(d.Images, v.Name), v.ContainerDisk.Path)
	if err != nil {
		return domain.Source{}, err
	}
	if err := create(ctx, path, "-F", string(base.Format), "-b", base.Path); err != nil {
		return domain.Source{}, err
	}
	direct := directIO(path) && directIO(base.Path)
	return domain.Source{Path: path, Format: domain.QCOW2, Backing: &base, DirectIO: direct}, nil
}

// empty makes a disk of at least one MiB, in whole MiB.
func empty(ctx context.Context, e *v1.EmptyDiskSource, path string) (domain.Source, error) {
	size := max(e.Capacity.Value()/mib, 1) * mib
	if err := create(ctx, path, strconv.FormatInt(size, 10)); err != nil {
		return domain.Source{}, err
	}
	return domain.Source{Path: path, Format: domain.QCOW2, DirectIO: directIO(path)}, nil
}

// create runs qemu-img unless the file is there; it appears whole or not at all.
func create(ctx context.Context, path string, args ...string) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	part := path + ".part"
	// Options come before the file and its size.
	flags, size := args, []string(nil)
	if len(args) == 1 {
		flags, size = nil, args
	}
	line := append([]string{"create", "-q", "-f", "qcow2"}, flags...)
	cmd := exec.CommandContext(ctx, "/usr/bin/qemu-img", append(append(line, part), size...)...)
	if _, err := child.Output(cmd); err != nil {
		return fmt.Errorf("creating %s: %w", filepath.Base(path), err)
	}
	return os.Rename(part, path)
}

func (d Dirs) seed(vmi *v1.VirtualMachineInstance, v *v1.Volume, path string) (domain.Source, error) {
	done := domain.Source{Path: path, Format: domain.Raw, DirectIO: false}
	if _, err := os.Lstat(path); err == nil {
		return done, nil
	}
	seed, err := cloudinit.From(v.CloudInitNoCloud, secrets{filepath.Join(d.Secrets, v.Name)}, string(vmi.UID), names.Hostname(vmi))
	if err != nil {
		return domain.Source{}, err
	}
	part := path + ".part"
	if err := errors.Join(ignoreMissing(os.Remove(part)), seed.Write(part, d.Disks)); err != nil {
		return domain.Source{}, err
	}
	return done, os.Rename(part, path)
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
