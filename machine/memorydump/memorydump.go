// Package memorydump holds the rules of memory dumps that virt-api, virt-controller and node agents share: what a claim
// must have room for, what a dump is called, and how long it may take.
package memorydump

import (
	"math"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/storage"
)

// overhead is what a dump has beside the guest's memory, in bytes; source: contract of KubeVirt.
const overhead = 100 * storage.MiB

// Longest time that a guest stands still: what every dump may take, and what each GiB adds.
const (
	base   = 2 * time.Minute
	perGiB = time.Minute
)

// name is what a dump may be called.
var name = regexp.MustCompile(`^[a-z0-9][-a-z0-9.]{0,200}\.memory\.dump$`)

// ValidName tells whether a file may have that name.
func ValidName(file string) bool { return name.MatchString(file) }

// Memory returns the bytes of a machine's memory; 0: it isn't known.
func Memory(spec *v1.VirtualMachineInstanceSpec) int64 {
	if m := spec.Domain.Memory; m != nil && m.Guest != nil {
		return m.Guest.Value()
	}
	return spec.Domain.Resources.Requests.Memory().Value()
}

// Needs returns how many bytes a claim must have for the dump of a machine, the share of its file system included.
func Needs(spec *v1.VirtualMachineInstanceSpec) int64 {
	share, _ := strconv.ParseFloat(string(storage.Overhead), 64) // a constant
	return int64(math.Ceil(float64(Memory(spec)+overhead) * (1 + share)))
}

// Patience is how long the dump of a machine may take.
func Patience(spec *v1.VirtualMachineInstanceSpec) time.Duration {
	gib := (Memory(spec) + 1<<30 - 1) >> 30
	return base + time.Duration(gib)*perGiB
}

// File returns what the dump of a VMI is called that was asked for at a time: another for each second.
func File(vmi, volume string, at time.Time) string {
	return names.LabelValue(vmi) + "-" + names.LabelValue(volume) + "-" + at.UTC().Format("20060102-150405") + ".memory.dump"
}

// Volume returns the volume of a machine that takes its dumps; nil: it has none.
func Volume(spec *v1.VirtualMachineInstanceSpec) *v1.Volume {
	for i := range spec.Volumes {
		if spec.Volumes[i].MemoryDump != nil {
			return &spec.Volumes[i]
		}
	}
	return nil
}

// Status is what a VMI's status says of a dump.
type Status struct {
	// Volume it goes to, on that claim.
	Volume, Claim string
	// Asked is when it was asked for; nil: none is.
	Asked *metav1.Time
	// Phase, File, Message and Ended are the node agent's.
	Phase         v1.VolumePhase
	File, Message string
	Ended         *metav1.Time
}

// Final tells whether it has an end, good or bad.
func (s Status) Final() bool {
	return s.Phase == v1.MemoryDumpVolumeCompleted || s.Phase == v1.MemoryDumpVolumeFailed
}

// Of reads the status of a VMI.
func Of(vmi *v1.VirtualMachineInstance) Status {
	for _, v := range vmi.Status.VolumeStatus {
		if d := v.MemoryDumpVolume; d != nil {
			return Status{v.Name, d.ClaimName, d.StartTimestamp, v.Phase, d.TargetFileName, v.Message, d.EndTimestamp}
		}
	}
	return Status{}
}
