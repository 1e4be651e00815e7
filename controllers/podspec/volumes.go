package podspec

import (
	"slices"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/names"
)

// tmpSize bounds what libvirt and QEMU may leave in /tmp, which counts as the Pod's memory.
const tmpSize = 16 << 20

// addVolumes gives the Pod the launcher's own directories and one volume for each of the VMI's that is not made inside.
func addVolumes(s *k8sv1.PodSpec, vmi *v1.VirtualMachineInstance) {
	mount(s, guestv1.RunDir, k8sv1.Volume{Name: guestv1.RunVolume, VolumeSource: emptyDir(k8sv1.EmptyDirVolumeSource{})})
	mount(s, guestv1.DiskDir, k8sv1.Volume{Name: guestv1.DiskVolume, VolumeSource: emptyDir(k8sv1.EmptyDirVolumeSource{})})
	mount(s, "/tmp", k8sv1.Volume{Name: "tmp", VolumeSource: emptyDir(k8sv1.EmptyDirVolumeSource{
		Medium: k8sv1.StorageMediumMemory, SizeLimit: resource.NewQuantity(tmpSize, resource.BinarySI),
	})})
	for _, v := range vmi.Spec.Volumes {
		switch {
		case v.ContainerDisk != nil:
			addImage(s, v)
		case v.CloudInitNoCloud != nil:
			addSecrets(s, v.Name, v.CloudInitNoCloud.UserDataSecretRef, v.CloudInitNoCloud.NetworkDataSecretRef)
		}
	}
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

// addSecrets mounts the Secrets a volume's data comes from in one directory, the key of each datum as its file.
func addSecrets(s *k8sv1.PodSpec, volume string, refs ...*k8sv1.LocalObjectReference) {
	var sources []k8sv1.VolumeProjection
	seen := map[string]bool{}
	for _, r := range refs {
		if r == nil || seen[r.Name] {
			continue
		}
		seen[r.Name] = true
		sources = append(sources, k8sv1.VolumeProjection{Secret: &k8sv1.SecretProjection{LocalObjectReference: *r}})
	}
	if len(sources) == 0 {
		return
	}
	mode := int32(0o440)
	mount(s, guestv1.SecretDir+"/"+volume, k8sv1.Volume{
		Name:         names.PodVolume("secret", volume),
		VolumeSource: k8sv1.VolumeSource{Projected: &k8sv1.ProjectedVolumeSource{Sources: sources, DefaultMode: &mode}},
	})
}
