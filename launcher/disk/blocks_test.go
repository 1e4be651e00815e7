package disk

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/domain"
)

func TestBlocksOfAFileAreItsFileSystems(t *testing.T) {
	file := t.TempDir() + "/disk.img"
	write(t, file, []byte("x"))
	var fs unix.Statfs_t
	if err := unix.Statfs(file, &fs); err != nil {
		t.Fatal(err)
	}
	no := false
	size := uint(fs.Bsize)
	for name, tc := range map[string]struct {
		asked *v1.BlockSize
		want  domain.Blocks
	}{
		"asked for":     {&v1.BlockSize{MatchVolume: &v1.FeatureState{}}, domain.Blocks{Logical: size, Physical: size, Discard: size}},
		"not asked for": {nil, domain.Blocks{}},
		"switched off":  {&v1.BlockSize{MatchVolume: &v1.FeatureState{Enabled: &no}}, domain.Blocks{}},
	} {
		vmi := &v1.VirtualMachineInstance{}
		vmi.Spec.Domain.Devices.Disks = []v1.Disk{{Name: "data", BlockSize: tc.asked}, {Name: "drive", BlockSize: tc.asked}}
		sources := map[string]domain.Source{"data": {Path: file}}
		if err := match(vmi, sources); err != nil || sources["data"].Blocks != tc.want || len(sources) != 1 {
			t.Errorf("%s: got %+v, %v; want %+v", name, sources, err, tc.want)
		}
	}
}

func TestBlocksAreNotAskedOfALink(t *testing.T) {
	link := t.TempDir() + "/disk.img"
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	if b, err := blocksOf(domain.Source{Path: link}); err == nil {
		t.Errorf("got %+v", b)
	}
}
