package drivertest

import (
	"testing"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/launcher/driver"
)

// all is every kind of device and every setting that a VMI may have.
const all = `
metadata: {namespace: drivertest, name: all}
spec:
  domain:
    rebootPolicy: Terminate
    ioThreadsPolicy: auto
    cpu: {sockets: 1, cores: 2, threads: 1, maxSockets: 2, model: Nehalem, features: [{name: aes}, {name: vmx, policy: disable}]}
    memory: {guest: 1000M, hugepages: {pageSize: 2Mi}}
    machine: {type: q35}
    firmware: {uuid: 4a1c2a52-6d0c-4b0e-9c8e-8b0c3b6f0a11, serial: s-1, bootloader: {bios: {useSerial: true}}}
    chassis: {manufacturer: Example, version: "1", serial: c-1, asset: a, sku: k}
    clock: {utc: {offsetSeconds: 3600}, timer: {rtc: {tickPolicy: catchup}, pit: {tickPolicy: delay}, hpet: {present: false}}}
    features: {acpi: {}, apic: {}, smm: {enabled: false}, pvspinlock: {}}
    devices:
      rng: {}
      tpm: {}
      autoattachVSOCK: true
      downwardMetrics: {}
      filesystems: [{name: config, virtiofs: {}}]
      gpus: [{name: card, deviceName: vendor.example/card}, {name: slice, deviceName: vendor.example/slice}]
      hostDevices: [{name: nic, deviceName: vendor.example/nic}, {name: key, deviceName: vendor.example/key}]
      blockMultiQueue: true
      sound: {name: audio}
      panicDevices: [{model: pvpanic}, {model: isa}]
      watchdog: {name: dog, i6300esb: {action: poweroff}}
      inputs: [{name: tablet, type: tablet, bus: usb}, {name: keys.1, type: keyboard, bus: virtio}]
      disks:
      - {name: root.disk, serial: "0001", bootOrder: 2, dedicatedIOThread: true, blockSize: {custom: {logical: 512, physical: 4096, discardGranularity: 4096}}, disk: {bus: virtio}}
      - {name: data, cache: writeback, io: threads, errorPolicy: report, disk: {bus: virtio, readonly: true}}
      - {name: shared, shareable: true, disk: {bus: sata}}
      - {name: block, dedicatedIOThread: true, blockSize: {matchVolume: {}}, disk: {bus: scsi}}
      - {name: lun, errorPolicy: enospace, lun: {bus: scsi}}
      - {name: quorum, shareable: true, lun: {bus: scsi, readonly: true}}
      - {name: far, disk: {bus: virtio, pciAddress: "0000:03:00.0"}}
      - {name: stick, disk: {bus: usb}}
      - {name: iso, cdrom: {bus: sata}}
      - {name: drive, cdrom: {bus: scsi, tray: open}}
      interfaces:
      - {name: fast, masquerade: {}, bootOrder: 1}
      - {name: old_one, bridge: {}, model: e1000, state: down, acpiIndex: 7}
      - {name: odd, masquerade: {}, model: rtl8139}
      - {name: ne, bridge: {}, model: ne2k_pci, pciAddress: "0000:00:1a.0"}
      - {name: pcnet, bridge: {}, model: pcnet}
      - {name: e1000e, bridge: {}, model: e1000e}
      - {name: igb, bridge: {}, model: igb}
status: {VSOCKCID: 4294967294}
`

// everything shows that what the converter makes of all of it is what libvirt takes.
func everything(t *testing.T, d Driver) {
	vmi := &v1.VirtualMachineInstance{}
	must(t, yaml.UnmarshalStrict([]byte(all), vmi))
	dir := short(t)
	file := func(name string, format domain.Format) domain.Source {
		return domain.Source{Path: dir + "/" + name, Format: format, DirectIO: true}
	}
	base := file("base", domain.QCOW2)
	overlay := file("overlay", domain.QCOW2)
	overlay.Backing = &base
	dom, err := domain.Convert(vmi, domain.Facts{
		Sources: map[string]domain.Source{
			"root.disk": overlay, "data": file("data", domain.Raw), "shared": file("shared", domain.Raw), "stick": file("stick", domain.Raw), "iso": file("iso", domain.Raw),
			"block":  {Path: "/dev/virtstack/block", Block: true, Format: domain.Raw, DirectIO: true, Blocks: domain.Blocks{Logical: 512, Physical: 4096}},
			"lun":    {Path: "/dev/virtstack/lun", Block: true, Format: domain.Raw, DirectIO: true},
			"quorum": {Path: "/dev/virtstack/quorum", Block: true, Format: domain.Raw, DirectIO: true},
			"far":    file("far", domain.Raw),
		},
		Interfaces: map[string]domain.Interface{
			"fast":    {Tap: "tap0", MAC: "02:00:5e:00:53:01", MTU: 1450, Queues: 2},
			"old_one": {Tap: "tap1", MAC: "02:00:5e:00:53:02"},
			"odd":     {Tap: "tap2", MAC: "02:00:5e:00:53:03"},
			"ne":      {Tap: "tap3", MAC: "02:00:5e:00:53:04"},
			"pcnet":   {Tap: "tap4", MAC: "02:00:5e:00:53:05"},
			"e1000e":  {Tap: "tap5", MAC: "02:00:5e:00:53:06"},
			"igb":     {Tap: "tap6", MAC: "02:00:5e:00:53:07"},
		},
		Sockets:     domain.Sockets{Serial: dir + "/serial", Agent: dir + "/agent", VNC: dir + "/vnc", Metrics: dir + "/metrics"},
		Filesystems: map[string]string{"config": dir + "/fs0.sock"},
		Assigned: domain.ParseAssigned([]string{
			"PCI_RESOURCE_VENDOR_EXAMPLE_CARD=0000:81:00.0", "MDEV_PCI_RESOURCE_VENDOR_EXAMPLE_SLICE=83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
			"PCI_RESOURCE_VENDOR_EXAMPLE_NIC=0000:03:10.1", "USB_RESOURCE_VENDOR_EXAMPLE_KEY=3:12",
		}),
	})
	must(t, err)
	xml, err := dom.Marshal()
	must(t, err)
	must(t, d.Define(t.Context(), xml))
	want(t, d, driver.Defined, driver.NotEnded)
}
