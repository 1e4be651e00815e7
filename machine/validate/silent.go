package validate

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

// idle are the kinds that are stored and that no controller of this version acts on, each with what there is instead.
var idle = map[schema.GroupKind]string{
	{Group: "kubevirt.io", Kind: "VirtualMachineInstanceReplicaSet"}:   "commit one VirtualMachine for each machine",
	{Group: "kubevirt.io", Kind: "VirtualMachineInstancePreset"}:       "use an instancetype and a preference",
	{Group: "kubevirt.io", Kind: "VirtualMachineInstanceMigration"}:    "restart the VirtualMachine, which may then run on another node",
	{Group: "pool.kubevirt.io", Kind: "VirtualMachinePool"}:            "commit one VirtualMachine for each machine",
	{Group: "migrations.kubevirt.io", Kind: "MigrationPolicy"}:         "there are no migrations yet",
	{Group: "snapshot.kubevirt.io", Kind: "VirtualMachineSnapshot"}:    "use VolumeSnapshots of the machine's claims while it is stopped",
	{Group: "snapshot.kubevirt.io", Kind: "VirtualMachineRestore"}:     "make claims of VolumeSnapshots and name them in the machine's volumes",
	{Group: "export.kubevirt.io", Kind: "VirtualMachineExport"}:        "copy the claim by a Pod that mounts it while the machine is stopped",
	{Group: "clone.kubevirt.io", Kind: "VirtualMachineClone"}:          "commit a second VirtualMachine, its volumes of claims with a dataSource",
	{Group: "backup.kubevirt.io", Kind: "VirtualMachineBackup"}:        "use VolumeSnapshots of the machine's claims",
	{Group: "backup.kubevirt.io", Kind: "VirtualMachineBackupTracker"}: "use VolumeSnapshots of the machine's claims",
}

const idleWords = " is stored and has no effect in this version: "

// silent lists what a machine's spec asks for and doesn't get, though the machine runs: each with its path and what
// there is instead. What a machine can't run without is not in it, but refused.
func silent(path *field.Path, spec *v1.VirtualMachineInstanceSpec) []string {
	var out []string
	say := func(asked bool, at *field.Path, instead string) {
		if asked {
			out = append(out, at.String()+" has no effect in this version: "+instead)
		}
	}
	domain := path.Child("domain")
	d := &spec.Domain
	say(d.Memory != nil && d.Memory.MaxGuest != nil, domain.Child("memory", "maxGuest"), "change memory.guest, and restart the machine")
	say(d.CPU != nil && d.CPU.MaxSockets > d.CPU.Sockets, domain.Child("cpu", "maxSockets"), "change cpu.sockets, and restart the machine")
	say(spec.EvictionStrategy != nil && *spec.EvictionStrategy != v1.EvictionStrategyNone, path.Child("evictionStrategy"),
		"there are no migrations yet, and a drain shuts the machine down in its grace period")
	const seeds = "no seed tells the guest of tags yet: name the device by its MAC address or serial"
	for i := range d.Devices.Disks {
		disk, at := &d.Devices.Disks[i], domain.Child("devices", "disks").Index(i)
		say(disk.Tag != "", at.Child("tag"), seeds)
		say(disk.ChangedBlockTracking != nil && *disk.ChangedBlockTracking, at.Child("changedBlockTracking"), "back up whole volumes")
	}
	for i := range d.Devices.Interfaces {
		say(d.Devices.Interfaces[i].Tag != "", domain.Child("devices", "interfaces").Index(i).Child("tag"), seeds)
	}
	for i := range d.Devices.GPUs {
		say(d.Devices.GPUs[i].Tag != "", domain.Child("devices", "gpus").Index(i).Child("tag"), seeds)
	}
	for i := range d.Devices.HostDevices {
		say(d.Devices.HostDevices[i].Tag != "", domain.Child("devices", "hostDevices").Index(i).Child("tag"), seeds)
	}
	const plug = "the volume is there from the start, and a change of it takes a restart"
	for i, v := range spec.Volumes {
		at := path.Child("volumes").Index(i)
		say(v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.Hotpluggable, at.Child("persistentVolumeClaim", "hotpluggable"), plug)
		say(v.DataVolume != nil && v.DataVolume.Hotpluggable, at.Child("dataVolume", "hotpluggable"), plug)
		say(v.HostDisk != nil && v.HostDisk.Shared != nil && *v.HostDisk.Shared, at.Child("hostDisk", "shared"), "there are no migrations yet")
	}
	return out
}
