package lifecycle

import (
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
)

// ReasonPodLost is the status.reason of a VMI whose launcher Pod was taken away: the guest didn't end by its own wish.
const ReasonPodLost = "LauncherPodLost"

// PodTaken tells whether a launcher Pod is taken away from a VMI that is still wanted: somebody deleted it, or it is
// evicted. Nobody who ends a VM does it that way, so a guest that shuts down for it did not mean to be down.
func PodTaken(vmi *v1.VirtualMachineInstance, pod *k8sv1.Pod) bool {
	if pod == nil || vmi.DeletionTimestamp != nil {
		return false
	}
	if pod.DeletionTimestamp != nil || pod.Status.Reason == "Evicted" {
		return true
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == k8sv1.DisruptionTarget && c.Status == k8sv1.ConditionTrue {
			return true
		}
	}
	return false
}
