package validate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// launchers are the directories in which launchers keep what is their own, by both of their names.
var launchers = []string{"/var/run/kubevirt", "/run/kubevirt", "/var/run/libvirt", "/run/libvirt"}

func containerPath(at *field.Path, p string) field.ErrorList {
	if wrong := filePath(at, p); len(wrong) > 0 {
		return wrong
	}
	for _, dir := range launchers {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			return field.ErrorList{field.Invalid(at, short(p), "must not be in "+dir+", where the launcher keeps its own")}
		}
	}
	return nil
}

// directories wants each volume that is a directory of the launcher to be a file system of the guest, and no disk.
func directories(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	var errs field.ErrorList
	for i, v := range spec.Volumes {
		if v.ContainerPath == nil {
			continue
		}
		at := path.Child("volumes").Index(i).Child("containerPath")
		if d := slices.IndexFunc(spec.Domain.Devices.Disks, func(d v1.Disk) bool { return d.Name == v.Name }); d >= 0 {
			errs = append(errs, field.Invalid(path.Child("domain", "devices", "disks").Index(d).Child("name"), short(v.Name),
				fmt.Sprintf("must not be of a volume with containerPath, a directory: use filesystems in place of disks for %s", at)))
			continue
		}
		if !slices.ContainsFunc(spec.Domain.Devices.Filesystems, func(f v1.Filesystem) bool { return f.Name == v.Name }) {
			errs = append(errs, field.Required(at, fmt.Sprintf("must have an entry of the name %q in domain.devices.filesystems", short(v.Name))))
		}
	}
	return errs
}
