package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/machine/storage"
)

// imageMode lets the guest's user and group at an image that is made here, and nobody else.
const imageMode = 0o660

// errReadOnly is why a claim without an image stays without one.
var errReadOnly = errors.New("has no " + storage.DiskFile + ", and none can be made: the volume is only read")

// claim is the device of a claim, or the image on it, which is made when the claim is empty.
func (d Dirs) claim(vmi *v1.VirtualMachineInstance, v *v1.Volume, path *field.Path) (domain.Source, error) {
	readOnly := v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
	size := func() (int64, error) {
		if readOnly {
			return 0, errReadOnly
		}
		return claimBytes(vmi, v.Name)
	}
	s, err := d.device(v.Name)
	if errors.Is(err, fs.ErrNotExist) {
		s, err = onFilesystem(filepath.Join(d.Claims, v.Name), storage.DiskFile, size)
	}
	s.ReadOnly = readOnly
	return s, refusal(path, storage.Claim(v), err)
}

// ephemeral lays a file that takes what the guest writes over a claim, which stays as it is.
func (d Dirs) ephemeral(ctx context.Context, v *v1.Volume, path *field.Path) (domain.Source, error) {
	base, err := d.device(v.Name)
	if errors.Is(err, fs.ErrNotExist) {
		base, err = onFilesystem(filepath.Join(d.Claims, v.Name), storage.DiskFile, func() (int64, error) { return 0, errReadOnly })
	}
	if err != nil {
		return domain.Source{}, refusal(path.Child("persistentVolumeClaim", "claimName"), storage.Claim(v), err)
	}
	file := d.file(v, ".qcow2")
	if err := create(ctx, file, 0, "-F", string(base.Format), "-b", base.Path); err != nil {
		return domain.Source{}, err
	}
	return domain.Source{Path: file, Format: domain.QCOW2, Backing: &base, DirectIO: base.DirectIO && directIO(file)}, nil
}

// hostDisk is a file on the node, in a directory that its administrator opened to VMs. One that was there keeps its
// owner and mode.
func (d Dirs) hostDisk(v *v1.Volume, path *field.Path) (domain.Source, error) {
	h := v.HostDisk
	s, err := onFilesystem(filepath.Join(d.Claims, v.Name), filepath.Base(h.Path), func() (int64, error) {
		if h.Type != v1.HostDiskExistsOrCreate {
			return 0, fmt.Errorf("holds nothing: make it on the node, or use type %s", v1.HostDiskExistsOrCreate)
		}
		return wholeMiB(h.Capacity.Value()), nil
	})
	return s, refusal(path.Child("path"), h.Path, err)
}

// device is the raw device of a claim. Where there is none, errors.Is(err, fs.ErrNotExist) holds.
func (d Dirs) device(volume string) (domain.Source, error) {
	path := filepath.Join(d.Blocks, volume)
	info, err := os.Lstat(path)
	if err != nil {
		return domain.Source{}, err
	}
	if info.Mode().Type() != fs.ModeDevice {
		return domain.Source{}, wrong{fmt.Errorf("is %s, want a block device", info.Mode().Type())}
	}
	return domain.Source{Path: path, Block: true, Format: domain.Raw, DirectIO: directIO(path)}, nil
}

// onFilesystem is the image of a name in a directory that others may write to as well. It must be a plain file, and is
// raw whatever its header says: the guest writes that. One that isn't there, or holds nothing, gets so many bytes as
// size returns, less if the file system has less.
func onFilesystem(dir, name string, size func() (int64, error)) (domain.Source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return domain.Source{}, fmt.Errorf("opening the volume: %w", err)
	}
	defer root.Close()
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = grow(root, name, os.O_CREATE|os.O_EXCL, size)
	case err != nil:
		return domain.Source{}, err
	case !info.Mode().IsRegular():
		return domain.Source{}, wrong{fmt.Errorf("%s is not a regular file but %s: remove it from the volume", name, info.Mode().Type())}
	case info.Size() == 0:
		err = grow(root, name, 0, size)
	}
	if err != nil {
		return domain.Source{}, err
	}
	path := filepath.Join(dir, name)
	return domain.Source{Path: path, Format: domain.Raw, DirectIO: directIO(path)}, nil
}

// grow gives an image its size, in a file that is made or is there. No link is followed: neither out of the directory,
// for which os.Root is there, nor within it.
func grow(root *os.Root, name string, flags int, size func() (int64, error)) error {
	bytes, err := size()
	if err != nil {
		return err
	}
	room, err := free(root)
	if err != nil {
		return err
	}
	fitted, ok := storage.Fit(bytes, room)
	if !ok || fitted < storage.MiB {
		return wrong{fmt.Errorf("has room for a disk of %d bytes, want %d: ask for more storage", room, bytes)}
	}
	f, err := root.OpenFile(name, flags|os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, imageMode)
	if err != nil {
		return fmt.Errorf("making %s: %w", name, err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		err = f.Truncate(fitted)
	}
	return errors.Join(err, f.Close())
}

// free returns the bytes that the launcher's user may still write to a file system.
func free(root *os.Root) (int64, error) {
	dir, err := root.Open(".")
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &s); err != nil {
		return 0, fmt.Errorf("asking for the room of the volume: %w", err)
	}
	return int64(s.Bavail) * s.Bsize, nil
}

// claimBytes returns the size of the image to make on the claim of a volume.
func claimBytes(vmi *v1.VirtualMachineInstance, volume string) (int64, error) {
	for _, s := range vmi.Status.VolumeStatus {
		if s.Name == volume && s.PersistentVolumeClaimInfo != nil {
			return storage.ImageBytes(s.PersistentVolumeClaimInfo), nil
		}
	}
	return 0, errors.New("its size isn't known yet")
}

// claimPath is the field of a volume that names its claim.
func claimPath(v *v1.Volume, path *field.Path) *field.Path {
	if v.DataVolume != nil {
		return path.Child("dataVolume", "name")
	}
	return path.Child("persistentVolumeClaim", "claimName")
}

// wrong is an error that the content of a volume is to blame for.
type wrong struct{ error }

// refusal makes an error one of a field, if the volume is to blame for it; any other may be gone the next time.
func refusal(path *field.Path, value string, err error) error {
	if blame := (wrong{}); errors.As(err, &blame) || errors.Is(err, errReadOnly) {
		return field.Invalid(path, value, err.Error())
	}
	if err != nil {
		return fmt.Errorf("%s: %q: %w", path, value, err)
	}
	return nil
}
