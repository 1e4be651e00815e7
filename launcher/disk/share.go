package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/projected"
	"virtstack.io/virtstack/machine/storage"
)

// Share is a directory that a guest mounts as it is.
type Share struct {
	Dir      string
	ReadOnly bool
}

// Shares returns the directories of a VMI's file systems by volume. What the spec is to blame for is a *field.Error.
func (d Dirs) Shares(vmi *v1.VirtualMachineInstance) (map[string]Share, error) {
	out := map[string]Share{}
	for i := range vmi.Spec.Volumes {
		v, path := &vmi.Spec.Volumes[i], field.NewPath("spec", "volumes").Index(i)
		if !isShared(vmi, v.Name) {
			continue
		}
		if !volumeName.MatchString(v.Name) {
			return nil, badName(v.Name, path)
		}
		share, err := d.share(v, path)
		if err != nil {
			return nil, err
		}
		out[v.Name] = share
	}
	return out, nil
}

// isShared tells whether a volume is a directory of the guest and no disk.
func isShared(vmi *v1.VirtualMachineInstance, volume string) bool {
	for _, d := range vmi.Spec.Domain.Devices.Disks {
		if d.Name == volume {
			return false
		}
	}
	for _, f := range vmi.Spec.Domain.Devices.Filesystems {
		if f.Name == volume {
			return true
		}
	}
	return false
}

func (d Dirs) share(v *v1.Volume, path *field.Path) (Share, error) {
	if claim := storage.Claim(v); claim != "" && v.Ephemeral == nil {
		share := Share{Dir: filepath.Join(d.Claims, v.Name), ReadOnly: v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly}
		return share, directory(share.Dir, field.Invalid(claimPath(v, path), claim, "must have volumeMode Filesystem, for a guest to mount it"))
	}
	from, ok := originOf(v, path)
	if !ok || v.Sysprep != nil {
		return Share{}, field.Invalid(path, v.Name, "can't be a file system: use configMap, secret, serviceAccount, downwardAPI or persistentVolumeClaim, or a disk")
	}
	share := Share{Dir: filepath.Join(d.Secrets, v.Name), ReadOnly: true}
	if from.empty {
		return share, directory(share.Dir, field.NotFound(from.path, from.name))
	}
	return share, directory(filepath.Join(share.Dir, projected.Published), field.NotFound(from.path, from.name))
}

// directory gives the refusal where there is no such directory.
func directory(dir string, refusal *field.Error) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !info.IsDir():
		return refusal
	case err != nil:
		return err
	}
	return nil
}
