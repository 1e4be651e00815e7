package lifecycle

import (
	"hash/fnv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
)

// Pauses after failed starts; source: contract §7.
const (
	firstPause   = 10 * time.Second
	longestPause = 300 * time.Second
)

// Pause returns how long to wait after n starts in a row that failed, the last being that of the VMI with uid: about
// 10, 40, 90, 160, 250 s, at most 300 s. Up to half is added, hashed from the UID, so that VMs that failed together
// don't start together.
func Pause(n int, uid types.UID) time.Duration {
	n = min(max(n, 1), 10)
	base := firstPause * time.Duration(n*n)
	h := fnv.New64a()
	h.Write([]byte(uid))
	jitter := time.Duration(h.Sum64() % uint64(base/2))
	return min(base+jitter, longestPause)
}

// RetryAt returns when a VM may be started again after failed starts; zero: at once.
func RetryAt(vm *v1.VirtualMachine, f *v1.VirtualMachineStartFailure) time.Time {
	s := Strategy(vm)
	if f == nil || f.RetryAfterTimestamp == nil || s != v1.RunStrategyAlways && s != v1.RunStrategyRerunOnFailure {
		return time.Time{}
	}
	return f.RetryAfterTimestamp.Time
}

// Started tells whether a VMI's guest has ever run.
func Started(vmi *v1.VirtualMachineInstance) bool {
	if vmi.Status.Phase == v1.Running {
		return true
	}
	for _, t := range vmi.Status.PhaseTransitionTimestamps {
		if t.Phase == v1.Running {
			return true
		}
	}
	return false
}

// StartFailure returns the count of failed starts after looking at vmi, which may be nil: a VMI that ended without
// having run counts once, one that ran clears the count, as does a change of the spec. What remains after a change
// names the last failed VMI only, so that it isn't counted again.
func StartFailure(now time.Time, vm *v1.VirtualMachine, vmi *v1.VirtualMachineInstance) *v1.VirtualMachineStartFailure {
	f := vm.Status.StartFailure.DeepCopy()
	if f != nil && vm.Generation != vm.Status.ObservedGeneration {
		f = &v1.VirtualMachineStartFailure{LastFailedVMIUID: f.LastFailedVMIUID}
	}
	switch {
	case vmi != nil && Started(vmi), Strategy(vm) == v1.RunStrategyHalted, Strategy(vm) == v1.RunStrategyManual:
		return nil
	case vmi == nil || !Final(vmi) || vmi.DeletionTimestamp != nil:
		return f
	case f != nil && f.LastFailedVMIUID == vmi.UID:
		return f
	}
	if f == nil {
		f = &v1.VirtualMachineStartFailure{}
	}
	f.ConsecutiveFailCount++
	f.LastFailedVMIUID = vmi.UID
	at := metav1.NewTime(now.Add(Pause(f.ConsecutiveFailCount, vmi.UID)).Truncate(time.Second))
	f.RetryAfterTimestamp = &at
	return f
}
