package disk

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "kubevirt.io/api/core/v1"
)

// mountedBy makes each volume of a VMI a file system.
func mountedBy(vmi *v1.VirtualMachineInstance) *v1.VirtualMachineInstance {
	for _, v := range vmi.Spec.Volumes {
		f := v1.Filesystem{Name: v.Name, Virtiofs: &v1.FilesystemVirtiofs{}}
		vmi.Spec.Domain.Devices.Filesystems = append(vmi.Spec.Domain.Devices.Filesystems, f)
	}
	return vmi
}

func TestADirectoryIsSharedAndNoDisk(t *testing.T) {
	d := dirs(t)
	publish(t, d.Secrets+"/config", map[string]string{"key": "value"})
	for _, dir := range []string{d.Secrets + "/maybe", d.Claims + "/data", d.Claims + "/kept"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	vmi := mountedBy(volumes(t, "{name: config, configMap: {name: c}}, {name: maybe, secret: {secretName: s, optional: true}}, "+
		"{name: data, persistentVolumeClaim: {claimName: c}}, {name: kept, persistentVolumeClaim: {claimName: c, readOnly: true}}"))
	got, err := d.Shares(vmi)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Share{
		"config": {d.Secrets + "/config", true}, "maybe": {d.Secrets + "/maybe", true},
		"data": {d.Claims + "/data", false}, "kept": {d.Claims + "/kept", true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if sources, err := d.Prepare(t.Context(), vmi); err != nil || len(sources) != 0 {
		t.Errorf("got disks %v, %v for what is no disk", sources, err)
	}
}

func TestWhatCantBeSharedIsNamed(t *testing.T) {
	d := dirs(t)
	for volume, want := range map[string]string{
		"{name: v, configMap: {name: c}}":                               `spec.volumes[0].configMap.name: Not found: "c"`,
		"{name: v, secret: {secretName: s}}":                            `spec.volumes[0].secret.secretName: Not found: "s"`,
		"{name: v, persistentVolumeClaim: {claimName: raw}}":            "spec.volumes[0].persistentVolumeClaim.claimName: Invalid value: \"raw\": must have volumeMode Filesystem",
		"{name: v, dataVolume: {name: raw}}":                            "spec.volumes[0].dataVolume.name: ",
		"{name: v, ephemeral: {persistentVolumeClaim: {claimName: c}}}": "spec.volumes[0]: Invalid value: \"v\": can't be a file system",
		"{name: v, emptyDisk: {capacity: 1Gi}}":                         "spec.volumes[0]: Invalid value: \"v\": can't be a file system",
		"{name: v, sysprep: {secret: {name: s}}}":                       "spec.volumes[0]: ",
		"{name: ../etc, configMap: {name: c}}":                          "spec.volumes[0].name: Invalid value: \"../etc\"",
	} {
		if _, err := d.Shares(mountedBy(volumes(t, volume))); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s…", volume, err, want)
		}
	}
}
