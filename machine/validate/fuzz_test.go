package validate_test

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/size"
	"virtstack.io/virtstack/machine/validate"
)

// written is what the definitions of the kinds let through as a quantity: anything else isn't read at all.
var written = regexp.MustCompile(`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,2}))?$`)

// Whatever amounts are accepted, the Pod's are positive and the guest's are whole bytes: no sum of them overflows.
func FuzzAmounts(f *testing.F) {
	for _, amount := range []string{"1Gi", "1.5Gi", "128974848e0", "1Pi", "9Ei", "1e99", "0.5", "-1", "1m", "4096", "5k", "+1Gi", ".5M"} {
		f.Add(amount, "1Gi", "2", "2Mi")
		f.Add("1Gi", amount, "2", "2Mi")
		f.Add("1Gi", "2Gi", amount, "1Gi")
		f.Add("1Gi", "2Gi", "1", amount)
	}
	f.Fuzz(func(t *testing.T, guest, memory, cpu, page string) {
		for _, amount := range []string{guest, memory, cpu, page} {
			if len(amount) > 64 || !written.MatchString(amount) {
				return
			}
		}
		raw, err := json.Marshal(map[string]any{"domain": map[string]any{
			"memory":    map[string]any{"guest": guest, "hugepages": map[string]any{"pageSize": page}},
			"resources": map[string]any{"requests": map[string]any{"memory": memory, "cpu": cpu}, "limits": map[string]any{"cpu": cpu}},
		}})
		vmi := &v1.VirtualMachineInstance{}
		if err != nil || json.Unmarshal(raw, &vmi.Spec) != nil {
			return
		}
		if len(validate.VMI(field.NewPath("spec"), &vmi.Spec)) > 0 {
			return
		}
		vmi = defaults.Instance(vmi, config.From(nil))
		if n := vmi.Spec.Domain.Memory.Guest; n.Value() <= 0 || n.MilliValue()%1000 != 0 && n.Value() < 1<<50 {
			t.Errorf("%s: the guest has %s", raw, n)
		}
		pod := size.Pod(vmi, config.From(nil))
		for name, q := range pod.Requests {
			if q.Sign() < 0 || q.Value() > 1<<52 {
				t.Errorf("%s: the Pod requests %s %s", raw, q.String(), name)
			}
		}
		if n := size.VCPUs(vmi); n < 1 || n > 4096 {
			t.Errorf("%s: %d virtual CPUs", raw, n)
		}
	})
}

// Whatever paths are accepted stay beneath the directory that they are looked for in, and are spelled in one way (S3).
func FuzzPaths(f *testing.F) {
	for _, p := range []string{
		"../../../../etc/hostname", "/disk/../../etc/hostname", "/", "/disk/", "disk/root.img", "/proc/self/environ", "//disk//root.img",
		"/disk/./root.img", "/disk/root.img", "/..", "/a\x00b", "/a\nb", "", ".", "/disk/..root.img", "/disk\\..\\root.img",
	} {
		f.Add(p, "root")
	}
	for _, name := range []string{"..", ".", "a/b", "a\nb", strings.Repeat("n", 300), "-", "a.b", "Ä"} {
		f.Add("/disk/root.img", name)
	}
	f.Fuzz(func(t *testing.T, p, name string) {
		spec := &v1.VirtualMachineInstanceSpec{}
		spec.Domain.Firmware = &v1.Firmware{KernelBoot: &v1.KernelBoot{Container: &v1.KernelBootContainer{Image: "i", KernelPath: p, InitrdPath: p}}}
		spec.Volumes = []v1.Volume{
			{Name: name, VolumeSource: v1.VolumeSource{ContainerDisk: &v1.ContainerDiskSource{Image: "i", Path: p}}},
			{Name: "h", VolumeSource: v1.VolumeSource{HostDisk: &v1.HostDisk{Path: p, Type: v1.HostDiskExists}}},
			{Name: "c", VolumeSource: v1.VolumeSource{ContainerPath: &v1.ContainerPathVolumeSource{Path: p}}},
		}
		wrong := map[string]bool{}
		for _, err := range validate.VMI(field.NewPath("spec"), spec) {
			wrong[err.Field] = true
		}
		inside := strings.HasPrefix(path.Join("/root", p), "/root/") && path.Clean(p) == p && path.IsAbs(p) && !strings.Contains(p, "\x00")
		for _, at := range []string{"spec.volumes[0].containerDisk.path", "spec.volumes[1].hostDisk.path", "spec.volumes[2].containerPath.path",
			"spec.domain.firmware.kernelBoot.container.kernelPath", "spec.domain.firmware.kernelBoot.container.initrdPath"} {
			if !inside && !wrong[at] && p != "" {
				t.Errorf("%s accepts %q", at, p)
			}
		}
		if harmless := path.Join("/root", name) == "/root/"+name && !strings.ContainsAny(name, "/\x00\n"); !harmless && !wrong["spec.volumes[0].name"] {
			t.Errorf("spec.volumes[0].name accepts %q", name)
		}
	})
}
