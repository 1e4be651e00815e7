package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

const asMade = "must stay as the machine was made with it"

// live checks what a component may do to a machine that runs.
func live(vmi, old *v1.VirtualMachineInstance, c config.Config) field.ErrorList {
	path, spec, was := field.NewPath("spec"), &vmi.Spec, &old.Spec
	var errs field.ErrorList
	if a, b := spec.Domain.CPU, was.Domain.CPU; a != nil && b != nil && a.MaxSockets != b.MaxSockets {
		errs = append(errs, field.Invalid(path.Child("domain", "cpu", "maxSockets"), int64(a.MaxSockets), asMade))
	}
	if a, b := spec.Domain.Memory, was.Domain.Memory; a != nil && b != nil && !equality.Semantic.DeepEqual(a.MaxGuest, b.MaxGuest) {
		errs = append(errs, field.Invalid(path.Child("domain", "memory", "maxGuest"), field.OmitValueType{}, asMade))
	}
	errs = append(errs, kept(path, vmi, was)...)
	errs = append(errs, plugged(path, spec, was)...)
	return append(errs, utilities(path.Child("utilityVolumes"), spec, was.UtilityVolumes, c)...)
}

// pluggable tells a volume that may come and go while its machine runs.
func pluggable(v v1.VolumeSource) bool {
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.Hotpluggable || v.DataVolume != nil && v.DataVolume.Hotpluggable || v.MemoryDump != nil
}

// kept wants the volumes that a machine was made with, and all that have been plugged in and stay, to be as they were,
// and their disks; but for the source of a volume that is being migrated.
func kept(path *field.Path, vmi *v1.VirtualMachineInstance, was *v1.VirtualMachineInstanceSpec) field.ErrorList {
	spec := &vmi.Spec
	var errs field.ErrorList
	gone := map[string]bool{}
	for _, old := range was.Volumes {
		i := slices.IndexFunc(spec.Volumes, func(v v1.Volume) bool { return v.Name == old.Name })
		moves := slices.ContainsFunc(vmi.Status.MigratedVolumes, func(m v1.StorageMigratedVolumeInfo) bool { return m.VolumeName == old.Name })
		switch {
		case i < 0 && pluggable(old.VolumeSource):
			gone[old.Name] = true
		case i < 0:
			errs = append(errs, field.Forbidden(path.Child("volumes"), "volume "+short(old.Name)+" is the machine's for as long as it runs: only what was plugged in can be taken away"))
		case !moves && !equality.Semantic.DeepEqual(spec.Volumes[i], old):
			errs = append(errs, field.Invalid(path.Child("volumes").Index(i), short(old.Name), asMade))
		}
	}
	for _, old := range was.Domain.Devices.Disks {
		i := slices.IndexFunc(spec.Domain.Devices.Disks, func(d v1.Disk) bool { return d.Name == old.Name })
		at := path.Child("domain", "devices", "disks")
		switch {
		case i < 0 && !gone[old.Name]:
			errs = append(errs, field.Forbidden(at, "disk "+short(old.Name)+" must stay while its volume does"))
		case i >= 0 && !equality.Semantic.DeepEqual(spec.Domain.Devices.Disks[i], old):
			errs = append(errs, field.Invalid(at.Index(i), short(old.Name), asMade))
		}
	}
	return errs
}

// plugged checks what comes to a machine that runs: claims, with disks on buses that take more of them.
func plugged(path *field.Path, spec, was *v1.VirtualMachineInstanceSpec) field.ErrorList {
	var errs field.ErrorList
	come := map[string]bool{}
	for i, v := range spec.Volumes {
		if hasVolume(was.Volumes, v.Name) {
			continue
		}
		come[v.Name] = true
		at := path.Child("volumes").Index(i)
		disk := slices.ContainsFunc(spec.Domain.Devices.Disks, func(d v1.Disk) bool { return d.Name == v.Name })
		switch {
		case !pluggable(v.VolumeSource):
			errs = append(errs, field.Invalid(at, short(v.Name), "must be a persistentVolumeClaim or a dataVolume with hotpluggable: true to come to a machine that runs"))
		case !disk && v.MemoryDump == nil:
			errs = append(errs, field.Required(path.Child("domain", "devices", "disks"), "must have a disk for volume "+short(v.Name)))
		}
	}
	for i, d := range spec.Domain.Devices.Disks {
		at := path.Child("domain", "devices", "disks").Index(i)
		switch {
		case slices.ContainsFunc(was.Domain.Devices.Disks, func(o v1.Disk) bool { return o.Name == d.Name }):
		case !come[d.Name]:
			errs = append(errs, field.Invalid(at.Child("name"), short(d.Name), "must be the name of a volume that comes with it"))
		case d.Disk != nil:
			errs = append(errs, oneOf(at.Child("disk", "bus"), d.Disk.Bus, []v1.DiskBus{v1.DiskBusSCSI, v1.DiskBusVirtio})...)
		case d.LUN == nil:
			errs = append(errs, field.Required(at, "must be a disk or a lun to come to a machine that runs"))
		}
	}
	return errs
}

// utilities checks volumes that are lent to a machine's launcher for a while.
func utilities(path *field.Path, spec *v1.VirtualMachineInstanceSpec, was []v1.UtilityVolume, c config.Config) field.ErrorList {
	if len(spec.UtilityVolumes) > 0 && !c.Enabled("UtilityVolumes") {
		return field.ErrorList{field.Forbidden(path, "needs the feature gate UtilityVolumes")}
	}
	errs := unique(len(spec.UtilityVolumes), func(i int) (string, *field.Path) {
		return spec.UtilityVolumes[i].Name, path.Index(i).Child("name")
	})
	for i, u := range spec.UtilityVolumes {
		at := path.Index(i)
		errs = append(errs, label(at.Child("name"), u.Name)...)
		errs = append(errs, named(at.Child("claimName"), u.ClaimName)...)
		if hasVolume(spec.Volumes, u.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), short(u.Name)))
		}
		for _, old := range was {
			if old.Name == u.Name && !equality.Semantic.DeepEqual(old, u) {
				errs = append(errs, field.Invalid(at, short(u.Name), "must stay as it was added"))
			}
		}
	}
	return errs
}
