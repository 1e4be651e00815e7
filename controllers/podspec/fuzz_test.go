package podspec_test

import (
	"path"
	"slices"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/validate"
)

// places are the only directories in a launcher Pod in which something of a VMI's naming is found.
var places = []string{guestv1.ImageDir, guestv1.ClaimDir, guestv1.BlockDir, guestv1.SecretDir}

// hostile is a VMI that carries a name and a path wherever it has one.
func hostile(name, file string) *v1.VirtualMachineInstance {
	vmi := &v1.VirtualMachineInstance{}
	vmi.Name, vmi.Namespace, vmi.UID = "web", "cases", "one"
	guest := resource.MustParse("128Mi")
	vmi.Spec.Domain.Memory = &v1.Memory{Guest: &guest}
	ref := k8sv1.LocalObjectReference{Name: name}
	claim := k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: name}
	for i, source := range []v1.VolumeSource{
		{ContainerDisk: &v1.ContainerDiskSource{Image: "i", Path: file}},
		{HostDisk: &v1.HostDisk{Path: file, Type: v1.HostDiskExists}},
		{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{PersistentVolumeClaimVolumeSource: claim}},
		{Ephemeral: &v1.EphemeralVolumeSource{PersistentVolumeClaim: &claim}},
		{Secret: &v1.SecretVolumeSource{SecretName: name}},
		{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: ref}},
		{CloudInitNoCloud: &v1.CloudInitNoCloudSource{UserDataSecretRef: &ref}},
	} {
		volume := name
		if i > 0 && len(name) < 60 {
			volume += string(rune('a' + i))
		}
		vmi.Spec.Volumes = append(vmi.Spec.Volumes, v1.Volume{Name: volume, VolumeSource: source})
	}
	return vmi
}

// alone returns the VMI with only one of its volumes, so that a refusal of another doesn't hide it.
func alone(vmi *v1.VirtualMachineInstance, i int) *v1.VirtualMachineInstance {
	vmi = vmi.DeepCopy()
	vmi.Spec.Volumes = vmi.Spec.Volumes[i : i+1]
	return vmi
}

// FuzzNamesAndPathsStayInside: whatever a VMI calls its volumes and files, one that is accepted is given nothing but one
// place of its own below the launcher's directories (threat S3). Source: GHSA-qv98-3369-g364.
func FuzzNamesAndPathsStayInside(f *testing.F) {
	for _, name := range []string{"root", "..", ".", "a/b", "a\nb", "", "A", "web-1", "a.b", "../../etc"} {
		for _, file := range []string{"/disk/root.img", "../../../../etc/hostname", "/disk/../../etc/hostname", "/", "/proc/self/environ", "//x", "/a\x00b"} {
			f.Add(name, file)
		}
	}
	open := config.From(&v1.KubeVirt{Spec: v1.KubeVirtSpec{Configuration: v1.KubeVirtConfiguration{
		DeveloperConfiguration: &v1.DeveloperConfiguration{FeatureGates: []string{"HostDisk"}},
	}}})
	f.Fuzz(func(t *testing.T, name, file string) {
		all := hostile(name, file)
		for i := range all.Spec.Volumes {
			vmi := alone(all, i)
			if len(validate.VMI(field.NewPath("spec"), &vmi.Spec)) > 0 {
				continue
			}
			pod, err := podspec.Render(vmi, open, image, podspec.Claims{name: true})
			if err != nil {
				continue
			}
			valid(t, pod)
			inside(t, pod, file)
		}
	})
}

// inside checks where a Pod's volumes are seen, and what of the node they show.
func inside(t *testing.T, pod *k8sv1.Pod, file string) {
	t.Helper()
	c := pod.Spec.Containers[0]
	var seen []string
	for _, m := range c.VolumeMounts {
		if m.Name != guestv1.RunVolume && m.Name != guestv1.DiskVolume && m.Name != "tmp" {
			seen = append(seen, m.MountPath)
		}
		if m.SubPath != "" && path.Clean(m.SubPath) != m.SubPath {
			t.Errorf("mounts %q of volume %s", m.SubPath, m.Name)
		}
	}
	for _, d := range c.VolumeDevices {
		seen = append(seen, d.DevicePath)
	}
	for _, p := range seen {
		dir, base := path.Split(p)
		if path.Clean(p) != p || base == ".." || !slices.ContainsFunc(places, func(place string) bool { return dir == place+"/" }) {
			t.Errorf("a volume is seen at %q", p)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil && (v.HostPath.Path != path.Dir(file) || path.Clean(file) != file || !path.IsAbs(file)) {
			t.Errorf("%q of the node is shown for disk %q", v.HostPath.Path, file)
		}
	}
}
