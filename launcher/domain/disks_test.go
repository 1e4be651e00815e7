package domain_test

import (
	"strings"
	"testing"

	"virtstack.io/virtstack/launcher/domain"
)

// What QEMU or libvirt would refuse without naming a field is refused with it.
func TestDisksThatCantBe(t *testing.T) {
	const file, device = "{path: /x, format: raw, directIO: true", "{path: /x, format: raw, directIO: true, block: true"
	for name, tc := range map[string]struct{ disk, source, want string }{
		"LUN of a file":          {"lun: {bus: scsi}", file + "}", "lun: Invalid value: \"d\": must be a claim with volumeMode Block"},
		"LUN on virtio":          {"lun: {bus: virtio}", device + "}", "lun.bus: Unsupported value: \"virtio\""},
		"LUN with a serial":      {"serial: a, lun: {}", device + "}", "serial: Forbidden"},
		"LUN with reservation":   {"lun: {reservation: true}", device + "}", "lun.reservation: Forbidden"},
		"cdrom on virtio":        {"cdrom: {bus: virtio}", file + "}", "cdrom.bus: Unsupported value"},
		"odd place":              {`disk: {bus: virtio, pciAddress: "3:0"}`, file + "}", "disk.pciAddress: Invalid value: \"3:0\""},
		"shared with a cache":    {"disk: {}, shareable: true, cache: writeback", file + "}", "cache: Invalid value: \"writeback\": must be none"},
		"shared through a cache": {"disk: {}, shareable: true", "{path: /x, format: raw}", "shareable: Invalid value: true: needs direct IO"},
		"no direct IO":           {"disk: {}, cache: none", "{path: /x, format: raw}", "cache: Invalid value: \"none\""},
		"big blocks on SATA":     {"disk: {bus: sata}, blockSize: {matchVolume: {}}", file + ", blocks: {logical: 4096}}", "blockSize.matchVolume: Invalid value: true: its volume works in blocks of 4096 bytes"},
		"odd blocks":             {"disk: {}, blockSize: {matchVolume: {}}", file + ", blocks: {logical: 520}}", "blockSize.matchVolume: Invalid value: true: its volume works in blocks of 520 and 520"},
	} {
		in := parse(t, "{vmi: {spec: {domain: {memory: {guest: 128Mi}, devices: {disks: [{name: d, "+tc.disk+"}]}}, volumes: [{name: d, emptyDisk: {capacity: 8Mi}}]}}, facts: {sources: {d: "+tc.source+"}}}")
		_, err := domain.Convert(in.VMI, in.Facts)
		if err == nil || !strings.HasPrefix(err.Error(), "spec.domain.devices.disks[0]."+tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}
