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
	if hugepageFiles(vmi) {
		mount(s, guestv1.HugePageDir, k8sv1.Volume{Name: "hugepages", VolumeSource: emptyDir(k8sv1.EmptyDirVolumeSource{Medium: k8sv1.StorageMediumHugePages})})
	}
	for i := range vmi.Spec.Volumes {
		v := &vmi.Spec.Volumes[i]
		switch {
		case v.ContainerDisk != nil:
			addImage(s, guestv1.ImageDir+"/"+v.Name, names.PodVolume("image", v.Name), imageOf(v.ContainerDisk))
		case v.HostDisk != nil:
			addHostDisk(s, v)
		case storage.Claim(v) != "":
			addClaim(s, v, claims[storage.Claim(v)])
		default:
			addData(s, v)
		}
	}
	addKernel(s, vmi.Spec.Domain.Firmware)
	addState(s, vmi)
	addCredentials(s, vmi.Spec.AccessCredentials)
}

// hugepageFiles tells whether the guest's memory is to be files of a hugetlbfs: anonymous huge pages need none.
func hugepageFiles(vmi *v1.VirtualMachineInstance) bool {
	m := vmi.Spec.Domain.Memory
	return m != nil && m.Hugepages != nil && vmi.Annotations[v1.MemfdMemoryBackend] == "false"
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

// container is an image that somebody else made.
type container struct {
	image, secret string
	pull          k8sv1.PullPolicy
}

func imageOf(c *v1.ContainerDiskSource) container {
	return container{c.Image, c.ImagePullSecret, c.ImagePullPolicy}
}

// addImage mounts an image; the launcher finds the disk or the kernel in it.
func addImage(s *k8sv1.PodSpec, path, name string, c container) {
	mount(s, path, k8sv1.Volume{Name: name, VolumeSource: k8sv1.VolumeSource{
		Image: &k8sv1.ImageVolumeSource{Reference: c.image, PullPolicy: c.pull},
	}})
	secret := k8sv1.LocalObjectReference{Name: c.secret}
	if secret.Name != "" && !slices.Contains(s.ImagePullSecrets, secret) {
		s.ImagePullSecrets = append(s.ImagePullSecrets, secret)
	}
}

// addKernel mounts the image of the kernel that the guest boots.
func addKernel(s *k8sv1.PodSpec, f *v1.Firmware) {
	if f == nil || f.KernelBoot == nil || f.KernelBoot.Container == nil {
		return
	}
	c := f.KernelBoot.Container
	addImage(s, guestv1.KernelDir, "kernel-boot", container{c.Image, c.ImagePullSecret, c.ImagePullPolicy})
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
