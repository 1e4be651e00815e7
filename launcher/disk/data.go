package disk

import (
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/cloudinit"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/iso"
	"virtstack.io/virtstack/launcher/projected"
)

// Labels of images; source: contract of KubeVirt.
const (
	dataLabel    = "cfgdata"
	sysprepLabel = "unattendCD"
)

// origin is where the data of a volume comes from.
type origin struct {
	path        *field.Path
	name, label string
	// empty says that there may be nothing in it.
	empty bool
}

// data is an image of the files that the kubelet brought for a volume.
func (d Dirs) data(v *v1.Volume, path *field.Path) (domain.Source, error) {
	from, ok := originOf(v, path)
	if !ok {
		return domain.Source{}, field.Invalid(path, v.Name, "its kind is not supported yet: use containerDisk, persistentVolumeClaim or emptyDisk")
	}
	return d.image(v, func() (cloudinit.Seed, error) {
		files, err := mounted(filepath.Join(d.Secrets, v.Name))
		switch {
		case err != nil:
			return cloudinit.Seed{}, fmt.Errorf("%s: %q: %w", from.path, from.name, err)
		case len(files) == 0 && !from.empty:
			return cloudinit.Seed{}, field.NotFound(from.path, from.name)
		case v.Sysprep != nil && !hasAnswers(files):
			return cloudinit.Seed{}, field.Invalid(from.path, from.name, "must have a key autounattend.xml or unattend.xml")
		}
		seed := cloudinit.Seed{Label: from.label, Files: files}
		if len(seed.Label) > iso.MaxLabel {
			return cloudinit.Seed{}, field.Invalid(labelPath(v, path), seed.Label, fmt.Sprintf("must have at most %d bytes", iso.MaxLabel))
		}
		return seed, nil
	})
}

func originOf(v *v1.Volume, path *field.Path) (origin, bool) {
	switch {
	case v.ConfigMap != nil:
		return origin{path.Child("configMap", "name"), v.ConfigMap.Name, label(v.ConfigMap.VolumeLabel), ptr.Deref(v.ConfigMap.Optional, false)}, true
	case v.Secret != nil:
		return origin{path.Child("secret", "secretName"), v.Secret.SecretName, label(v.Secret.VolumeLabel), ptr.Deref(v.Secret.Optional, false)}, true
	case v.DownwardAPI != nil:
		return origin{path.Child("downwardAPI"), v.Name, label(v.DownwardAPI.VolumeLabel), true}, true
	case v.ServiceAccount != nil:
		return origin{path.Child("serviceAccount", "serviceAccountName"), v.ServiceAccount.ServiceAccountName, dataLabel, false}, true
	case v.Sysprep != nil && v.Sysprep.Secret != nil:
		return origin{path.Child("sysprep", "secret", "name"), v.Sysprep.Secret.Name, sysprepLabel, false}, true
	case v.Sysprep != nil && v.Sysprep.ConfigMap != nil:
		return origin{path.Child("sysprep", "configMap", "name"), v.Sysprep.ConfigMap.Name, sysprepLabel, false}, true
	}
	return origin{}, false
}

// labelPath is the field of a volume's label.
func labelPath(v *v1.Volume, path *field.Path) *field.Path {
	switch {
	case v.ConfigMap != nil:
		path = path.Child("configMap")
	case v.Secret != nil:
		path = path.Child("secret")
	default:
		path = path.Child("downwardAPI")
	}
	return path.Child("volumeLabel")
}

func label(given string) string {
	if given == "" {
		return dataLabel
	}
	return given
}

func hasAnswers(files []iso.File) bool {
	for _, f := range files {
		if name := strings.ToLower(f.Name); name == "autounattend.xml" || name == "unattend.xml" {
			return true
		}
	}
	return false
}

// mounted reads what the kubelet has published in a directory; nothing is left out.
func mounted(dir string) ([]iso.File, error) {
	found, err := projected.Read(dir)
	files := make([]iso.File, 0, len(found))
	for _, f := range found {
		files = append(files, iso.File(f))
	}
	return files, err
}
