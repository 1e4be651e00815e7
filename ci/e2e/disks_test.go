//go:build e2e

package e2e

import (
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// withDisk adds a volume, and a disk of it that is written as in a spec.
func (p place) withDisk(name, device string, source v1.VolumeSource) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) {
		disk := v1.Disk{Name: name}
		p.must(yaml.UnmarshalStrict([]byte(device), &disk))
		s := &vm.Spec.Template.Spec
		s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, disk)
		s.Volumes = append(s.Volumes, v1.Volume{Name: name, VolumeSource: source})
	}
}

// Disks are where the spec puts them, on every bus that the test guest knows, and have the block sizes of their volumes.
func TestDisksOnTheirBuses(t *testing.T) {
	p := newPlace(t, "buses")
	scratch := v1.VolumeSource{EmptyDisk: &v1.EmptyDiskSource{Capacity: quantity("16Mi")}}
	p.blockClaim("device", 64<<20)
	p.create(p.vm("web",
		p.withDisk("placed", `{disk: {bus: virtio, pciAddress: "0000:05:00.0"}, serial: placed-1, blockSize: {matchVolume: {}}}`, scratch),
		p.withDisk("device", `{disk: {bus: scsi}, shareable: true, blockSize: {matchVolume: {}}, errorPolicy: report}`, claimed("device")),
		p.withDisk("second", `{disk: {bus: scsi}, serial: second-1}`, scratch),
		p.withDisk("old", `{disk: {bus: sata}, cache: writeback}`, scratch),
		p.withDisk("media", `{cdrom: {bus: scsi}}`, scratch),
	))
	p.phase("web", v1.Running, 2*time.Minute)
	c := p.shell("web")
	p.asked(c, "cd /sys/block; readlink vdb | cut -d/ -f5,6; cat vdb/serial", "0000:05:00.0/virtio")
	p.asked(c, "cat vdb/queue/logical_block_size vdb/queue/physical_block_size", "4096\r\n4096")
	p.asked(c, `for d in sd*; do x=$(readlink -f $d/device); case $x in */ata*) b=ata;; *) b=virtio;; esac; echo $b:${x##*:}:$(cat $d/size); done | sort`,
		"ata:0:32768\r\nvirtio:0:131072\r\nvirtio:1:32768")
	p.asked(c, `x=$(readlink -f sr0/device); echo media:${x##*:}`, "media:3")
	p.asked(c, "d=$(grep -l 131072 sd*/size | cut -d/ -f1); echo blocks:$(cat $d/queue/logical_block_size)", "blocks:512")
	p.asked(c, "echo shared-by''te | dd of=/dev/$d conv=sync,fsync; head -c 11 /dev/$d; echo", "shared-byte")
}

// Commands of SCSI go to a device alone: a LUN of a file is a condition that names its disk.
func TestALUNIsADevice(t *testing.T) {
	p := newPlace(t, "luns")
	p.claim("file", "16Mi")
	p.create(p.vm("web", p.withDisk("file", "{lun: {bus: scsi}}", claimed("file"))))
	p.told("web", "spec.domain.devices.disks[1].lun: ")
}
