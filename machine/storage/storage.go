// Package storage holds the rules of volumes that virt-controller and the launcher share: which claim a volume reads,
// and how large a disk image on a claim is.
package storage

import (
	"math"
	"strconv"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	v1 "kubevirt.io/api/core/v1"
)

// MiB is the unit of which every disk that is made here is a whole number: any block size that a guest, QEMU or a
// file system uses divides it.
const MiB = 1 << 20

// Overhead is the part of a claim that its file system is taken to need for itself, unless the claim's status says
// otherwise; source: contract of KubeVirt.
const Overhead v1.Percent = "0.055"

// Tolerance is how much smaller than asked, as a part of it, an image may be where the file system has no more room;
// source: contract of KubeVirt, pvcTolerateLessSpaceUpToPercent.
const Tolerance = 0.10

// DiskFile is the name of the image on a claim with a file system.
const DiskFile = "disk.img"

// Claim returns the name of the PersistentVolumeClaim that a volume is on, empty where it is on none. A DataVolume's
// claim has its name.
func Claim(v *v1.Volume) string {
	switch {
	case v.PersistentVolumeClaim != nil:
		return v.PersistentVolumeClaim.ClaimName
	case v.DataVolume != nil:
		return v.DataVolume.Name
	case v.MemoryDump != nil:
		return v.MemoryDump.ClaimName
	case v.Ephemeral != nil && v.Ephemeral.PersistentVolumeClaim != nil:
		return v.Ephemeral.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// Writes returns the names of the claims whose image or device a machine writes to, and of each whether all of its disks
// there are shareable. What lies beneath an ephemeral disk, what is only read and a file system that the guest mounts are
// not among them.
func Writes(spec *v1.VirtualMachineInstanceSpec) map[string]bool {
	out := map[string]bool{}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		name := Claim(v)
		if name == "" || v.Ephemeral != nil || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly {
			continue
		}
		for _, d := range spec.Domain.Devices.Disks {
			if d.Name != v.Name {
				continue
			}
			shared, again := out[name]
			out[name] = ptr.Deref(d.Shareable, false) && (shared || !again)
		}
	}
	return out
}

// Block tells whether a claim is a raw device; Kubernetes' default is a file system.
func Block(mode *k8sv1.PersistentVolumeMode) bool {
	return mode != nil && *mode == k8sv1.PersistentVolumeBlock
}

// ImageBytes returns the size of the image to make on a claim: the smaller of what was requested and what there is,
// less the file system's overhead, in whole MiB. It is 0 where neither is known or less than a MiB is left.
func ImageBytes(info *v1.PersistentVolumeClaimInfo) int64 {
	size := int64(math.MaxInt64)
	for _, list := range []k8sv1.ResourceList{info.Requests, info.Capacity} {
		if q, ok := list[k8sv1.ResourceStorage]; ok {
			size = min(size, q.Value())
		}
	}
	if size == math.MaxInt64 || size <= 0 {
		return 0
	}
	return int64(float64(size)*(1-overhead(info.FilesystemOverhead))) / MiB * MiB
}

// Fit returns the size of an image of size bytes on a file system with room for so many: whole MiB, and no more than
// Tolerance less than asked. ok is false where that is too little.
func Fit(size, room int64) (fitted int64, ok bool) {
	if size <= room {
		return size, true
	}
	fitted = room / MiB * MiB
	return fitted, fitted > 0 && float64(fitted) >= float64(size)*(1-Tolerance)
}

// overhead reads a part between 0 and 1; anything else is the default.
func overhead(p *v1.Percent) float64 {
	if p != nil {
		if f, err := strconv.ParseFloat(string(*p), 64); err == nil && f >= 0 && f < 1 {
			return f
		}
	}
	f, _ := strconv.ParseFloat(string(Overhead), 64)
	return f
}
