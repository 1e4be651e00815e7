package podspec

import (
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/storage"
)

// StateClaim returns the claim on which a VMI keeps what its TPM and its firmware's variables hold; nil: it keeps
// nothing. It is gone with the VM.
func StateClaim(vmi *v1.VirtualMachineInstance, cfg config.Config) *k8sv1.PersistentVolumeClaim {
	if !storage.KeepsState(&vmi.Spec.Domain) {
		return nil
	}
	owner, mode := names.StateOwner(vmi), k8sv1.PersistentVolumeFilesystem
	claim := &k8sv1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       vmi.Namespace,
			Name:            names.StateClaim(vmi),
			Labels:          map[string]string{names.StateLabel: names.LabelValue(owner.Name)},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: k8sv1.PersistentVolumeClaimSpec{
			AccessModes: []k8sv1.PersistentVolumeAccessMode{k8sv1.ReadWriteOnce},
			VolumeMode:  &mode,
			Resources: k8sv1.VolumeResourceRequirements{Requests: k8sv1.ResourceList{
				k8sv1.ResourceStorage: *resource.NewQuantity(storage.StateMiB*storage.MiB, resource.BinarySI),
			}},
		},
	}
	if cfg.StateStorageClass != "" {
		claim.Spec.StorageClassName = &cfg.StateStorageClass
	}
	return claim
}

// addState mounts the claim of a VMI's state.
func addState(s *k8sv1.PodSpec, vmi *v1.VirtualMachineInstance) {
	if !storage.KeepsState(&vmi.Spec.Domain) {
		return
	}
	mount(s, guestv1.StateDir, k8sv1.Volume{Name: guestv1.StateVolume, VolumeSource: k8sv1.VolumeSource{
		PersistentVolumeClaim: &k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: names.StateClaim(vmi)},
	}})
	writable(s)
}
