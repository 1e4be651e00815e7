package memorydump

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
)

func spec(memory string) *v1.VirtualMachineInstanceSpec {
	q := resource.MustParse(memory)
	return &v1.VirtualMachineInstanceSpec{Domain: v1.DomainSpec{Memory: &v1.Memory{Guest: &q}}}
}

func TestWhatADumpTakes(t *testing.T) {
	for memory, want := range map[string]struct {
		bytes    int64
		patience time.Duration
	}{
		"128Mi": {252224472, 3 * time.Minute}, // (128 + 100) MiB and 5.5 %
		"1Gi":   {1243422393, 3 * time.Minute},
		"16Gi":  {18235386758, 18 * time.Minute},
	} {
		if got := Needs(spec(memory)); got != want.bytes {
			t.Errorf("%s: needs %d bytes, want %d", memory, got, want.bytes)
		}
		if got := Patience(spec(memory)); got != want.patience {
			t.Errorf("%s: may take %s, want %s", memory, got, want.patience)
		}
	}
}

func TestNamesOfDumps(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if got, want := File("web", "dumps", at), "web-dumps-20260102-030405.memory.dump"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	long := strings.Repeat("a.b-", 60) + "c"
	if a, b := File(long, "dumps", at), File(long+"d", "dumps", at); a == b || !ValidName(a) || len(a) > 255 {
		t.Errorf("got %s and %s", a, b)
	}
	for _, wrong := range []string{"", ".memory.dump", "../x.memory.dump", "a/b.memory.dump", "x.memory.dump.part", "disk.img"} {
		if ValidName(wrong) {
			t.Errorf("%q is valid", wrong)
		}
	}
}
