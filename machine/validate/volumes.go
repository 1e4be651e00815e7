package validate

import (
	"encoding/base64"
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// maxCloudInit is the most bytes of user data, and of network data, that a spec may hold.
const maxCloudInit = 2048

func volumes(path *field.Path, list []v1.Volume) field.ErrorList {
	errs := unique(len(list), func(i int) (string, *field.Path) {
		return list[i].Name, path.Index(i).Child("name")
	})
	first := map[string]*field.Path{}
	for i := range list {
		at := path.Index(i)
		errs = append(errs, label(at.Child("name"), list[i].Name)...)
		wrong := exactlyOne(at, list[i].VolumeSource)
		if len(wrong) > 0 {
			errs = append(errs, wrong...)
			continue
		}
		errs = append(errs, source(at, &list[i].VolumeSource)...)
		kind := set(list[i].VolumeSource)[0]
		if kind != "serviceAccount" && kind != "downwardMetrics" && kind != "memoryDump" {
			continue
		}
		if other, seen := first[kind]; seen {
			errs = append(errs, field.Invalid(at.Child(kind), short(list[i].Name),
				fmt.Sprintf("must be the only volume of its kind: %s is one too", other)))
		}
		first[kind] = at
	}
	return errs
}

// source checks the one source of a volume that is set.
func source(path *field.Path, s *v1.VolumeSource) field.ErrorList {
	switch {
	case s.ContainerDisk != nil:
		at := path.Child("containerDisk")
		errs := image(at.Child("image"), s.ContainerDisk.Image)
		if s.ContainerDisk.Path != "" {
			errs = append(errs, filePath(at.Child("path"), s.ContainerDisk.Path)...)
		}
		return errs
	case s.EmptyDisk != nil:
		return amount(path.Child("emptyDisk", "capacity"), s.EmptyDisk.Capacity, 1)
	case s.HostDisk != nil:
		return hostDisk(path.Child("hostDisk"), s.HostDisk)
	case s.CloudInitNoCloud != nil:
		return cloudInit(path.Child("cloudInitNoCloud"), *s.CloudInitNoCloud)
	case s.CloudInitConfigDrive != nil:
		return cloudInit(path.Child("cloudInitConfigDrive"), v1.CloudInitNoCloudSource(*s.CloudInitConfigDrive))
	case s.Sysprep != nil:
		return exactlyOne(path.Child("sysprep"), *s.Sysprep)
	case s.ContainerPath != nil:
		return containerPath(path.Child("containerPath", "path"), s.ContainerPath.Path)
	}
	return reference(path, s)
}

// reference checks that a source which names another object does.
func reference(path *field.Path, s *v1.VolumeSource) field.ErrorList {
	switch {
	case s.PersistentVolumeClaim != nil:
		return named(path.Child("persistentVolumeClaim", "claimName"), s.PersistentVolumeClaim.ClaimName)
	case s.MemoryDump != nil:
		return named(path.Child("memoryDump", "claimName"), s.MemoryDump.ClaimName)
	case s.DataVolume != nil:
		return named(path.Child("dataVolume", "name"), s.DataVolume.Name)
	case s.Ephemeral != nil:
		at := path.Child("ephemeral", "persistentVolumeClaim")
		if s.Ephemeral.PersistentVolumeClaim == nil {
			return field.ErrorList{field.Required(at, "must name the claim that is read")}
		}
		return named(at.Child("claimName"), s.Ephemeral.PersistentVolumeClaim.ClaimName)
	case s.ConfigMap != nil:
		return named(path.Child("configMap", "name"), s.ConfigMap.Name)
	case s.Secret != nil:
		return named(path.Child("secret", "secretName"), s.Secret.SecretName)
	case s.ServiceAccount != nil:
		return named(path.Child("serviceAccount", "serviceAccountName"), s.ServiceAccount.ServiceAccountName)
	}
	return nil
}

func hostDisk(path *field.Path, h *v1.HostDisk) field.ErrorList {
	if h.Path == "" {
		return field.ErrorList{field.Required(path.Child("path"), "must be the absolute path of a file on the node")}
	}
	errs := filePath(path.Child("path"), h.Path)
	if h.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must be Disk or DiskOrCreate"))
	}
	errs = append(errs, oneOf(path.Child("type"), h.Type,
		[]v1.HostDiskType{v1.HostDiskExists, v1.HostDiskExistsOrCreate})...)
	switch {
	case h.Type == v1.HostDiskExistsOrCreate:
		errs = append(errs, amount(path.Child("capacity"), h.Capacity, 1)...)
	case !h.Capacity.IsZero():
		errs = append(errs, field.Invalid(path.Child("capacity"), h.Capacity.String(), "needs type DiskOrCreate"))
	}
	return errs
}

// cloudInit wants at least one of user and network data, each from one place.
func cloudInit(path *field.Path, c v1.CloudInitNoCloudSource) field.ErrorList {
	user := data{path: path, text: "userData", encoded: "userDataBase64", secret: "secretRef"}
	network := data{path: path, text: "networkData", encoded: "networkDataBase64", secret: "networkDataSecretRef"}
	given, errs := user.check(c.UserData, c.UserDataBase64, c.UserDataSecretRef)
	more, wrong := network.check(c.NetworkData, c.NetworkDataBase64, c.NetworkDataSecretRef)
	errs = append(errs, wrong...)
	if given+more == 0 {
		errs = append(errs, field.Required(path, "must have one of userData, userDataBase64, secretRef, "+
			"networkData, networkDataBase64, networkDataSecretRef"))
	}
	return errs
}

// data is one of the two parts of a cloud-init source: its path and the names of its fields.
type data struct {
	path                  *field.Path
	text, encoded, secret string
}

// check returns how many of the fields are set, and what is wrong with them.
func (d data) check(text, encoded string, secret *k8sv1.LocalObjectReference) (int, field.ErrorList) {
	var found []string
	var errs field.ErrorList
	if text != "" {
		found = append(found, d.text)
		errs = append(errs, d.limit(d.text, len(text))...)
	}
	if encoded != "" {
		found = append(found, d.encoded)
		decoded, err := base64.StdEncoding.DecodeString(encoded) // skips line breaks
		if err != nil {
			errs = append(errs, field.Invalid(d.path.Child(d.encoded), short(encoded),
				fmt.Sprintf("%s must be base64: %v", d.encoded, err)))
		}
		errs = append(errs, d.limit(d.encoded, len(decoded))...)
	}
	if secret != nil {
		found = append(found, d.secret)
		errs = append(errs, named(d.path.Child(d.secret, "name"), secret.Name)...)
	}
	if len(found) > 1 {
		errs = append(errs, tooMany(d.path, found)...)
	}
	return len(found), errs
}

func (d data) limit(name string, size int) field.ErrorList {
	if size <= maxCloudInit {
		return nil
	}
	return field.ErrorList{field.Invalid(d.path.Child(name), size,
		fmt.Sprintf("%s has %d bytes and may have %d: put more into a Secret and name it in %s", name, size, maxCloudInit, d.secret))}
}

func named(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "must be the name of an object in the machine's namespace")}
	}
	return objectName(path, name)
}
