package podspec_test

import (
	"errors"
	"testing"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/machine/config"
)

// With the gate, a VM reaches the directories that the administrator named, by their own names, and no other (GHSA-46xp-26xh-hpqh).
func TestHostDisksStayInTheirDirectories(t *testing.T) {
	kv := &v1.KubeVirt{}
	kv.Annotations = map[string]string{config.HostDiskAnnotation: "/data/disks, /srv , relative, /"}
	kv.Spec.Configuration.DeveloperConfiguration = &v1.DeveloperConfiguration{FeatureGates: []string{"HostDisk"}}
	for path, ok := range map[string]bool{
		"/data/disks/web.img": true, "/srv/web.img": true,
		"/data/disks/deeper/web.img": false, "/data/disks/../web.img": false, "/data/disks/": false, "//srv/web.img": false,
		"/web.img": false, "relative/web.img": false, "/data/web.img": false, "/": false, "": false, "/srv/./web.img": false,
	} {
		vmi := &v1.VirtualMachineInstance{}
		vmi.Namespace, vmi.Name = "vms", "web"
		vmi.Spec.Volumes = []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{HostDisk: &v1.HostDisk{Path: path, Type: v1.HostDiskExists}}}}
		pod, err := podspec.Render(vmi, config.From(kv), image, claims)
		var unsupported *podspec.UnsupportedError
		switch {
		case !ok && (!errors.As(err, &unsupported) || unsupported.Field != "spec.volumes[0].hostDisk.path"):
			t.Errorf("%q: got %v, want a refusal of the path", path, err)
		case ok && err != nil:
			t.Errorf("%q: %v", path, err)
		case ok:
			valid(t, pod)
		}
	}
}
