package podspec

import (
	"path"
	"slices"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/names"
	"virtstack.io/virtstack/machine/storage"
)

// tmpSize bounds what libvirt and QEMU may leave in /tmp, which counts as the Pod's memory.
const tmpSize = 16 << 20

// addVolumes gives the Pod the launcher's own directories and one volume for each of the VMI's that is not made inside.
func addVolumes(s *k8sv1.PodSpec, vmi *v1.VirtualMachineInstance, claims Claims) {
	mount(s, guestv1.RunDir, k8sv1.Volume{Name: guestv1.RunVolume, VolumeSource: emptyDir(k8sv1.EmptyDirVolumeSource{})})
	mount(s, guestv1.DiskDir, k8sv1.Volume{Name: guestv1.DiskVolume, VolumeSource: emptyDir(k8sv1.EmptyDirVolumeSource{})})
	mount(s, "/tmp", k8sv1.Volume{Name: "tmp", VolumeSource: emptyDir(k8sv1.EmptyDirVolumeSource{
		Medium: k8sv1.StorageMediumMemory, SizeLimit: resource.NewQuantity(tmpSize, resource.BinarySI),
	})})
	for i := range vmi.Spec.Volumes {
		v := &vmi.Spec.Volumes[i]
		switch {
		case v.ContainerDisk != nil:
			addImage(s, *v)
		case v.HostDisk != nil:
			addHostDisk(s, v)
		case storage.Claim(v) != "":
			addClaim(s, v, claims[storage.Claim(v)])
		default:
			addData(s, v)
		}
	}
	addCredentials(s, vmi.Spec.AccessCredentials)
}

func emptyDir(e k8sv1.EmptyDirVolumeSource) k8sv1.VolumeSource {
	return k8sv1.VolumeSource{EmptyDir: &e}
}

func mount(s *k8sv1.PodSpec, path string, v k8sv1.Volume) {
	readOnly := v.EmptyDir == nil
	s.Volumes = append(s.Volumes, v)
	c := &s.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, k8sv1.VolumeMount{Name: v.Name, MountPath: path, ReadOnly: readOnly})
}

// writable takes back that the last mount is read-only.
func writable(s *k8sv1.PodSpec) {
	mounts := s.Containers[0].VolumeMounts
	mounts[len(mounts)-1].ReadOnly = false
}

// addImage mounts a containerDisk's image; the launcher finds the disk in it and lays an overlay over it.
func addImage(s *k8sv1.PodSpec, v v1.Volume) {
	mount(s, guestv1.ImageDir+"/"+v.Name, k8sv1.Volume{
		Name: names.PodVolume("image", v.Name),
		VolumeSource: k8sv1.VolumeSource{Image: &k8sv1.ImageVolumeSource{
			Reference: v.ContainerDisk.Image, PullPolicy: v.ContainerDisk.ImagePullPolicy,
		}},
	})
	secret := k8sv1.LocalObjectReference{Name: v.ContainerDisk.ImagePullSecret}
	if secret.Name != "" && !slices.Contains(s.ImagePullSecrets, secret) {
		s.ImagePullSecrets = append(s.ImagePullSecrets, secret)
	}
}

// addClaim gives the launcher a claim: its device node, or its file system, in which the launcher finds or makes the
// disk. What only lies beneath an ephemeral disk is never written to.
func addClaim(s *k8sv1.PodSpec, v *v1.Volume, block bool) {
	name, claim := names.PodVolume("claim", v.Name), &k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: storage.Claim(v)}
	claim.ReadOnly = readsOnly(v)
	volume := k8sv1.Volume{Name: name, VolumeSource: k8sv1.VolumeSource{PersistentVolumeClaim: claim}}
	if block {
		s.Volumes = append(s.Volumes, volume)
		s.Containers[0].VolumeDevices = append(s.Containers[0].VolumeDevices, k8sv1.VolumeDevice{Name: name, DevicePath: guestv1.BlockDir + "/" + v.Name})
		return
	}
	mount(s, guestv1.ClaimDir+"/"+v.Name, volume)
	if !claim.ReadOnly {
		writable(s)
	}
}

func readsOnly(v *v1.Volume) bool {
	if v.Ephemeral != nil {
		return true
	}
	return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ReadOnly
}

// addHostDisk mounts the directory of a disk on the node. It must be there: a directory that the kubelet made would be
// root's, and the launcher couldn't make a disk in it.
func addHostDisk(s *k8sv1.PodSpec, v *v1.Volume) {
	kind := k8sv1.HostPathDirectory
	mount(s, guestv1.ClaimDir+"/"+v.Name, k8sv1.Volume{
		Name:         names.PodVolume("host", v.Name),
		VolumeSource: k8sv1.VolumeSource{HostPath: &k8sv1.HostPathVolumeSource{Path: path.Dir(v.HostDisk.Path), Type: &kind}},
	})
	writable(s)
}
