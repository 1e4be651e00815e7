package plan

import (
	"fmt"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/storage"
)

// Reasons of a volume's status, and of Synchronized where a volume keeps a VMI from starting.
const (
	ReasonClaimNotFound = "FailedPvcNotFound"
	ReasonClaimNotReady = "PVCNotReady"
	ReasonClaimLost     = "PVCLost"
	ReasonClaimHeld     = "PVCInUse"
	ReasonImporting     = "DataVolumeNotReady"
	ReasonImportFailed  = "FailedDataVolumeImport"
)

// claimProblem says which claim keeps a VMI from getting its Pod. One that isn't bound doesn't: it may wait for its
// first Pod to be placed.
func claimProblem(s Seen) (reason, message string) {
	for i := range s.VMI.Spec.Volumes {
		v := &s.VMI.Spec.Volumes[i]
		name := storage.Claim(v)
		claim := s.Claims[name]
		switch {
		case name == "":
		case claim == nil:
			return ReasonClaimNotFound, missing(i, v, s.VMI.Namespace, name)
		case claim.Status.Phase == k8sv1.ClaimLost:
			return ReasonClaimLost, fmt.Sprintf("spec.volumes[%d]: PersistentVolumeClaim %s/%s has lost its volume %s", i, s.VMI.Namespace, name, claim.Spec.VolumeName)
		case s.Held[name] != "":
			return ReasonClaimHeld, fmt.Sprintf("spec.volumes[%d]: PersistentVolumeClaim %s/%s: VMI %s writes to it: stop that one, or make the disk shareable in both", i, s.VMI.Namespace, name, s.Held[name])
		}
	}
	return "", ""
}

// importProblem says which DataVolume hasn't filled its claim: a guest that starts from half a disk would spoil it. One
// that waits for its claim's first Pod, and fills the claim before that Pod may start, is no obstacle.
func importProblem(s Seen) (reason, message string) {
	for i := range s.VMI.Spec.Volumes {
		name := storage.Claim(&s.VMI.Spec.Volumes[i])
		phase, made := s.Imports[name]
		if !made || phase == "Succeeded" || phase == "PendingPopulation" {
			continue
		}
		at := fmt.Sprintf("spec.volumes[%d]: DataVolume %s/%s", i, s.VMI.Namespace, name)
		switch phase {
		case "":
			return ReasonImporting, at + " has not begun to fill its claim"
		case "Failed":
			return ReasonImportFailed, at + " has failed: its own conditions say why"
		case "WaitForFirstConsumer":
			return ReasonImporting, at + " waits for a first Pod that isn't the VM's: annotate it with cdi.kubevirt.io/storage.bind.immediate.requested"
		}
		return ReasonImporting, fmt.Sprintf("%s fills its claim: %.64q", at, phase)
	}
	return "", ""
}

func missing(i int, v *v1.Volume, namespace, name string) string {
	if v.DataVolume != nil {
		return fmt.Sprintf("spec.volumes[%d].dataVolume.name: %s/%s: neither the DataVolume nor a PersistentVolumeClaim of its name has been made yet", i, namespace, name)
	}
	return fmt.Sprintf("spec.volumes[%d]: PersistentVolumeClaim %s/%s doesn't exist yet", i, namespace, name)
}

// volumes tells of each volume that reads a claim what that claim is, and while it isn't bound, that it isn't. Of a
// claim that is gone, what was said of it is said again.
func volumes(s Seen) []v1.VolumeStatus {
	said := map[string]v1.VolumeStatus{}
	for _, v := range s.VMI.DeepCopy().Status.VolumeStatus {
		said[v.Name] = v
	}
	var out []v1.VolumeStatus
	for i := range s.VMI.Spec.Volumes {
		v := &s.VMI.Spec.Volumes[i]
		name := storage.Claim(v)
		claim := s.Claims[name]
		if name == "" || claim == nil && said[v.Name].PersistentVolumeClaimInfo == nil {
			continue
		}
		st := v1.VolumeStatus{Name: v.Name, PersistentVolumeClaimInfo: said[v.Name].PersistentVolumeClaimInfo}
		if claim != nil {
			st.PersistentVolumeClaimInfo = claimInfo(claim)
		}
		if claim != nil && claim.Status.Phase == k8sv1.ClaimPending {
			st.Phase, st.Reason = v1.VolumePending, ReasonClaimNotReady
			st.Message = fmt.Sprintf("PersistentVolumeClaim %s is not bound yet", name)
		}
		out = append(out, st)
	}
	return out
}

func claimInfo(claim *k8sv1.PersistentVolumeClaim) *v1.PersistentVolumeClaimInfo {
	claim = claim.DeepCopy()
	mode := k8sv1.PersistentVolumeFilesystem
	if storage.Block(claim.Spec.VolumeMode) {
		mode = k8sv1.PersistentVolumeBlock
	}
	info := &v1.PersistentVolumeClaimInfo{
		ClaimName: claim.Name, AccessModes: claim.Spec.AccessModes, VolumeMode: &mode,
		Capacity: claim.Status.Capacity, Requests: claim.Spec.Resources.Requests,
	}
	if mode == k8sv1.PersistentVolumeFilesystem {
		overhead := storage.Overhead
		info.FilesystemOverhead = &overhead
	}
	return info
}
