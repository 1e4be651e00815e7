package storage_test

import (
	"maps"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
	"pgregory.net/rapid"

	"virtstack.io/virtstack/machine/storage"
)

func list(q string) k8sv1.ResourceList {
	if q == "" {
		return nil
	}
	return k8sv1.ResourceList{k8sv1.ResourceStorage: resource.MustParse(q)}
}

// Decimal sizes become whole MiB, with a reserve, by the smaller of request and capacity. Source:
// kubevirt/kubevirt#6712.
func TestCase18ImageSizes(t *testing.T) {
	for name, tc := range map[string]struct {
		requests, capacity string
		overhead           v1.Percent
		want               int64
	}{
		"decimal":          {"70M", "70M", "", 63 << 20},
		"capacity larger":  {"70M", "1Gi", "", 63 << 20},
		"capacity smaller": {"1Gi", "70M", "", 63 << 20},
		"unbound":          {"70M", "", "", 63 << 20},
		"no overhead":      {"100Mi", "", "0", 100 << 20},
		"nonsense":         {"100Mi", "", "much", 94 << 20},
		"negative":         {"100Mi", "", "-3", 94 << 20},
		"tiny":             {"1k", "", "", 0},
		"unknown":          {"", "", "", 0},
	} {
		info := &v1.PersistentVolumeClaimInfo{Requests: list(tc.requests), Capacity: list(tc.capacity)}
		if tc.overhead != "" {
			info.FilesystemOverhead = &tc.overhead
		}
		if got := storage.ImageBytes(info); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

func TestFitIsWholeAndNotTooSmall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 1<<20).Draw(t, "size") * storage.MiB
		room := rapid.Int64Range(0, 1<<41).Draw(t, "room")
		got, ok := storage.Fit(size, room)
		if !ok {
			if float64(room) >= float64(size) {
				t.Fatalf("%d bytes don't fit into %d", size, room)
			}
			return
		}
		if got > room || got > size || got%storage.MiB != 0 || got < storage.MiB || float64(got) < 0.9*float64(size) {
			t.Fatalf("got %d of %d with room for %d", got, size, room)
		}
	})
}

func TestClaims(t *testing.T) {
	pvc := k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}
	for want, s := range map[string]v1.VolumeSource{
		"c":  {PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{PersistentVolumeClaimVolumeSource: pvc}},
		"d":  {DataVolume: &v1.DataVolumeSource{Name: "d"}},
		"":   {EmptyDisk: &v1.EmptyDiskSource{}},
		"c ": {Ephemeral: &v1.EphemeralVolumeSource{PersistentVolumeClaim: &k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: "c "}}},
	} {
		if got := storage.Claim(&v1.Volume{VolumeSource: s}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestClaimsThatAreWritten(t *testing.T) {
	claim := func(name string, readOnly bool) v1.VolumeSource {
		return v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{
			PersistentVolumeClaimVolumeSource: k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: name, ReadOnly: readOnly},
		}}
	}
	yes := true
	spec := v1.VirtualMachineInstanceSpec{Volumes: []v1.Volume{
		{Name: "own", VolumeSource: claim("own", false)}, {Name: "shared", VolumeSource: claim("shared", false)},
		{Name: "mixed-1", VolumeSource: claim("mixed", false)}, {Name: "mixed-2", VolumeSource: claim("mixed", false)},
		{Name: "read", VolumeSource: claim("read", true)}, {Name: "mounted", VolumeSource: claim("mounted", false)},
		{Name: "base", VolumeSource: v1.VolumeSource{Ephemeral: &v1.EphemeralVolumeSource{PersistentVolumeClaim: &k8sv1.PersistentVolumeClaimVolumeSource{ClaimName: "base"}}}},
	}}
	spec.Domain.Devices.Disks = []v1.Disk{
		{Name: "own"}, {Name: "shared", Shareable: &yes}, {Name: "mixed-1", Shareable: &yes}, {Name: "mixed-2"}, {Name: "read"}, {Name: "base"},
	}
	want := map[string]bool{"own": false, "shared": true, "mixed": false}
	if got := storage.Writes(&spec); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
