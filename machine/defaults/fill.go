package defaults

import (
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

// fill sets what the spec leaves open. Every part sets empty fields only, so filling twice is filling once.
func fill(vmi *v1.VirtualMachineInstance, cfg config.Config) {
	s := &vmi.Spec
	if s.Architecture == "" {
		s.Architecture = cfg.Architecture
	}
	if s.EvictionStrategy == nil {
		e := cfg.EvictionStrategy
		s.EvictionStrategy = &e
	}
	fillMachine(&s.Domain, s.Architecture, cfg)
	fillCPU(&s.Domain, cfg)
	fillHyperv(&s.Domain)
	fillMemory(&s.Domain)
	fillVolumes(s)
	Attach(s, cfg)
	fillDisks(s)
	fillInputs(&s.Domain.Devices)
	fillWatchdog(s.Domain.Devices.Watchdog, s.Architecture)
	if vmi.Name != "" { // one that the API server has yet to name is told by that name afterwards
		fillFirmware(&s.Domain, vmi.Namespace, vmi.Name)
		fillMACs(s, vmi.Namespace, vmi.Name)
	}
}

func fillMachine(d *v1.DomainSpec, arch string, cfg config.Config) {
	if d.Machine == nil {
		d.Machine = &v1.Machine{}
	}
	if d.Machine.Type == "" {
		d.Machine.Type = cfg.MachineType(arch)
	}
}

func fillCPU(d *v1.DomainSpec, cfg config.Config) {
	if d.CPU == nil {
		d.CPU = &v1.CPU{}
	}
	c := d.CPU
	if c.Cores == 0 && c.Sockets == 0 && c.Threads == 0 {
		c.Sockets = requestedCPUs(d.Resources)
	}
	for _, n := range []*uint32{&c.Cores, &c.Sockets, &c.Threads} {
		if *n == 0 {
			*n = 1
		}
	}
	if c.Model == "" {
		c.Model = cfg.CPUModel
	}
}

// requestedCPUs returns the CPU limit, else request, in whole CPUs, rounded up; at least 1.
func requestedCPUs(r v1.ResourceRequirements) uint32 {
	for _, list := range []k8sv1.ResourceList{r.Limits, r.Requests} {
		if q, ok := list[k8sv1.ResourceCPU]; ok {
			return max(1, uint32(q.Value()))
		}
	}
	return 1
}

// fillMemory sets the guest's memory from the Pod resources of a spec that gives only those.
func fillMemory(d *v1.DomainSpec) {
	if d.Memory == nil {
		d.Memory = &v1.Memory{}
	}
	if d.Memory.Guest != nil {
		return
	}
	for _, list := range []k8sv1.ResourceList{d.Resources.Requests, d.Resources.Limits} {
		if q, ok := list[k8sv1.ResourceMemory]; ok {
			d.Memory.Guest = &q
			return
		}
	}
	if h := d.Memory.Hugepages; h != nil {
		if q, err := resource.ParseQuantity(h.PageSize); err == nil {
			d.Memory.Guest = &q
		}
	}
}

func fillFirmware(d *v1.DomainSpec, namespace, name string) {
	if d.Firmware == nil {
		d.Firmware = &v1.Firmware{}
	}
	if d.Firmware.UUID == "" {
		d.Firmware.UUID = types.UID(FirmwareUUID(namespace, name))
	}
	if d.Firmware.Serial == "" {
		d.Firmware.Serial = Serial(namespace, name)
	}
}

func fillVolumes(s *v1.VirtualMachineInstanceSpec) {
	for i := range s.Volumes {
		if c := s.Volumes[i].ContainerDisk; c != nil && c.ImagePullPolicy == "" {
			c.ImagePullPolicy = pullPolicy(c.Image)
		}
	}
	fw := s.Domain.Firmware
	if fw == nil || fw.KernelBoot == nil {
		return
	}
	if c := fw.KernelBoot.Container; c != nil && c.ImagePullPolicy == "" {
		c.ImagePullPolicy = pullPolicy(c.Image)
	}
}

// pullPolicy is that of an image whose spec names none: a moving tag is pulled each time.
func pullPolicy(image string) k8sv1.PullPolicy {
	name := image[strings.LastIndex(image, "/")+1:]
	if strings.HasSuffix(name, ":latest") || !strings.ContainsAny(name, ":@") {
		return k8sv1.PullAlways
	}
	return k8sv1.PullIfNotPresent
}

// attachDisks gives every volume that nothing shows to the guest a disk.
func attachDisks(s *v1.VirtualMachineInstanceSpec) {
	shown := map[string]bool{}
	for _, d := range s.Domain.Devices.Disks {
		shown[d.Name] = true
	}
	for _, f := range s.Domain.Devices.Filesystems {
		shown[f.Name] = true
	}
	for _, v := range s.Volumes {
		if !shown[v.Name] && v.MemoryDump == nil {
			s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, v1.Disk{Name: v.Name})
		}
	}
}

// fillDisks gives every disk a target and a bus; guests look for metrics of their node on a virtio disk only.
func fillDisks(s *v1.VirtualMachineInstanceSpec) {
	metrics := map[string]bool{}
	for _, v := range s.Volumes {
		metrics[v.Name] = v.DownwardMetrics != nil
	}
	for i := range s.Domain.Devices.Disks {
		bus := DiskBus(s.Architecture)
		if metrics[s.Domain.Devices.Disks[i].Name] {
			bus = v1.DiskBusVirtio
		}
		fillDisk(&s.Domain.Devices.Disks[i], bus)
	}
}

// fillWatchdog gives a watchdog that names no model the one of its architecture, and one that names no action a reset.
func fillWatchdog(w *v1.Watchdog, arch string) {
	if w == nil {
		return
	}
	if w.I6300ESB == nil && w.Diag288 == nil {
		switch arch {
		case "amd64":
			w.I6300ESB = &v1.I6300ESBWatchdog{}
		case "s390x":
			w.Diag288 = &v1.Diag288Watchdog{}
		}
	}
	if w.I6300ESB != nil && w.I6300ESB.Action == "" {
		w.I6300ESB.Action = v1.WatchdogActionReset
	}
	if w.Diag288 != nil && w.Diag288.Action == "" {
		w.Diag288.Action = v1.WatchdogActionReset
	}
}

// fillInputs makes an input device that doesn't say what it is a USB tablet.
func fillInputs(d *v1.Devices) {
	for i := range d.Inputs {
		if d.Inputs[i].Type == "" {
			d.Inputs[i].Type = v1.InputTypeTablet
		}
		if d.Inputs[i].Bus == "" {
			d.Inputs[i].Bus = v1.InputBusUSB
		}
	}
}

// DiskBus returns the bus of a disk that names none.
func DiskBus(arch string) v1.DiskBus {
	if arch == "amd64" {
		return v1.DiskBusSATA
	}
	return v1.DiskBusVirtio
}

func fillDisk(d *v1.Disk, bus v1.DiskBus) {
	if d.Disk == nil && d.LUN == nil && d.CDRom == nil {
		d.Disk = &v1.DiskTarget{}
	}
	switch {
	case d.Disk != nil && d.Disk.Bus == "":
		d.Disk.Bus = bus
	case d.LUN != nil && d.LUN.Bus == "":
		d.LUN.Bus = v1.DiskBusSCSI // no other takes its commands
	case d.CDRom != nil:
		fillCDRom(d.CDRom, bus)
	}
}

func fillCDRom(c *v1.CDRomTarget, bus v1.DiskBus) {
	switch {
	case c.Bus == "" && bus == v1.DiskBusVirtio:
		c.Bus = v1.DiskBusSCSI // virtio has no CD-ROMs
	case c.Bus == "":
		c.Bus = bus
	}
	if c.ReadOnly == nil {
		yes := true
		c.ReadOnly = &yes
	}
	if c.Tray == "" {
		c.Tray = v1.TrayStateClosed
	}
}

// fillNetwork gives a VMI that names no network the Pod's.
func fillNetwork(s *v1.VirtualMachineInstanceSpec, cfg config.Config) {
	d := &s.Domain.Devices
	if len(s.Networks) > 0 || len(d.Interfaces) > 0 || d.AutoattachPodInterface != nil && !*d.AutoattachPodInterface {
		return
	}
	iface := v1.Interface{Name: "default"}
	if cfg.NetworkInterface == string(v1.MasqueradeInterface) {
		iface.Masquerade = &v1.InterfaceMasquerade{}
	} else {
		iface.Bridge = &v1.InterfaceBridge{}
	}
	s.Networks = []v1.Network{*v1.DefaultPodNetwork()}
	d.Interfaces = []v1.Interface{iface}
}

// fillMACs derives the address of masquerade interfaces: the guest is alone on that link, so namespace and name are
// enough. The bridge binding hands the Pod's own address on.
func fillMACs(s *v1.VirtualMachineInstanceSpec, namespace, name string) {
	for i := range s.Domain.Devices.Interfaces {
		if iface := &s.Domain.Devices.Interfaces[i]; iface.MacAddress == "" && iface.Masquerade != nil {
			iface.MacAddress = MAC(namespace, name, iface.Name)
		}
	}
}
