package drivertest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/launcher/cpus"
	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver"
)

// ownCPUs shows that a guest runs on CPUs of this machine that it has for itself, QEMU's other threads on another one
// where there are two.
func ownCPUs(t *testing.T, d Driver) {
	have, err := cpus.Read(os.DirFS("/proc"), os.DirFS("/sys"))
	must(t, err)
	starts(t, d, func(s *v1.DomainSpec, facts *domain.Facts) {
		facts.CPUs = have[:min(2, len(have))]
		s.CPU = &v1.CPU{DedicatedCPUPlacement: true, IsolateEmulatorThread: len(facts.CPUs) == 2}
	})
}

// ownNUMA shows that libvirt takes NUMA cells like the node's, with huge pages.
func ownNUMA(t *testing.T, d Driver) {
	must(t, d.Define(t.Context(), guest(t, func(s *v1.DomainSpec, facts *domain.Facts) {
		memory := resource.MustParse("64Mi")
		s.Memory = &v1.Memory{Guest: &memory, Hugepages: &v1.Hugepages{PageSize: "2Mi"}}
		s.CPU = &v1.CPU{
			Cores: 2, MaxSockets: 2, DedicatedCPUPlacement: true, Realtime: &v1.Realtime{},
			NUMA: &v1.NUMA{GuestMappingPassthrough: &v1.NUMAGuestMappingPassthrough{}},
		}
		facts.CPUs = []domain.HostCPU{{ID: 0, Core: 0, Cell: 0}, {ID: 4, Core: 4, Cell: 1}}
	})))
	want(t, d, driver.Defined, driver.NotEnded)
}

// licensed shows that a guest runs with ACPI tables of files, and with a maker and a case of its own.
func licensed(t *testing.T, d Driver) {
	dir := t.TempDir()
	starts(t, d, func(s *v1.DomainSpec, facts *domain.Facts) {
		s.Firmware.ACPI = &v1.ACPI{SlicNameRef: "slic", MsdmNameRef: "msdm"}
		s.Chassis = &v1.Chassis{Manufacturer: "Example & Sons", Version: "2", Serial: "c-1", Asset: "a-1", Sku: "k-1"}
		facts.SMBIOS = domain.SMBIOS{Manufacturer: "Example & Sons", Product: "Board, first", Family: "Rack", Version: "v2", SKU: "k-9"}
		facts.Tables = map[string]string{"slic": table(t, dir, "SLIC"), "msdm": table(t, dir, "MSDM")}
	})
}

// table writes an ACPI table: a header with the length, and some bytes.
func table(t *testing.T, dir, kind string) string {
	t.Helper()
	b := make([]byte, 36+48)
	copy(b, kind)
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)))
	copy(b[8:], "1\x00\x00\x00EXMPLEEXAMPLE1")
	path := filepath.Join(dir, kind+".bin")
	must(t, os.WriteFile(path, b, 0o600))
	return path
}
