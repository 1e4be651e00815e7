package plan

import (
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
)

// Bounds of the context ids that a guest may have: those below are the kernel's, the one above means any.
const (
	firstCID uint32 = 3
	anyCID   uint32 = 1<<32 - 1
)

// NeedsCID tells whether a VMI has a socket to its node and no context id for it yet.
func NeedsCID(vmi *v1.VirtualMachineInstance) bool {
	wanted := vmi.Spec.Domain.Devices.AutoattachVSOCK
	return wanted != nil && *wanted && vmi.Status.VSOCKCID == nil
}

// contextID returns the context id of a VMI, hashed from its UID: it is most likely its own in the whole cluster, which a
// migration needs, and on its node it is for sure, for of those that are taken there the next free one follows. Two VMIs
// that come to one node at once with the same hash, one chance in four thousand million, end in QEMU refusing the second.
func contextID(uid types.UID, taken map[uint32]bool) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	id := firstCID + h.Sum32()%(anyCID-firstCID)
	for taken[id] {
		if id++; id == anyCID {
			id = firstCID
		}
	}
	return id
}
