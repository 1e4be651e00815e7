package domain

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// balloonPeriod is how often the guest is asked for its memory figures, in seconds.
const balloonPeriod = 10

// virtio is the model of every virtio device.
func (c *converter) virtio() string {
	if t := c.spec().Devices.UseVirtioTransitional; t != nil && *t {
		return "virtio-transitional"
	}
	return "virtio-non-transitional"
}

// serial is the guest's first serial port. QEMU connects to a socket on which the launcher already listens: so not one
// byte of the boot is lost, and the launcher can drain it whether somebody watches or not.
func (c *converter) serial() ([]libvirtxml.DomainSerial, []libvirtxml.DomainConsole) {
	if !on(c.spec().Devices.AutoattachSerialConsole) {
		return nil, nil
	}
	socket := &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "connect", Path: c.facts.Sockets.Serial}}
	serial := libvirtxml.DomainSerial{Source: socket, Target: &libvirtxml.DomainSerialTarget{Port: ptr(uint(0))}}
	console := libvirtxml.DomainConsole{Source: socket, Target: &libvirtxml.DomainConsoleTarget{Type: "serial", Port: ptr(uint(0))}}
	return []libvirtxml.DomainSerial{serial}, []libvirtxml.DomainConsole{console}
}

// channels carries the guest agent.
func (c *converter) channels() []libvirtxml.DomainChannel {
	return []libvirtxml.DomainChannel{{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: c.facts.Sockets.Agent}},
		Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: "org.qemu.guest_agent.0"}},
	}}
}

func (c *converter) graphics() []libvirtxml.DomainGraphic {
	if !on(c.spec().Devices.AutoattachGraphicsDevice) {
		return nil
	}
	listen := libvirtxml.DomainGraphicListener{Socket: &libvirtxml.DomainGraphicListenerSocket{Socket: c.facts.Sockets.VNC}}
	return []libvirtxml.DomainGraphic{{VNC: &libvirtxml.DomainGraphicVNC{Listeners: []libvirtxml.DomainGraphicListener{listen}}}}
}

func (c *converter) videos() []libvirtxml.DomainVideo {
	if !on(c.spec().Devices.AutoattachGraphicsDevice) {
		return nil
	}
	model := libvirtxml.DomainVideoModel{Type: "vga", Heads: 1}
	if v := c.spec().Devices.Video; v != nil && v.Type != "" {
		model.Type = v.Type
	}
	if model.Type == "vga" || model.Type == "bochs" {
		model.VRam = 16 << 10 // KiB
	}
	return []libvirtxml.DomainVideo{{Model: model}}
}

func (c *converter) inputs() []libvirtxml.DomainInput {
	var l []libvirtxml.DomainInput
	for i, in := range c.spec().Devices.Inputs {
		path := c.path.Child("devices", "inputs").Index(i)
		kinds := []v1.InputType{v1.InputTypeKeyboard, v1.InputTypeTablet}
		if !slices.Contains(kinds, in.Type) {
			c.refuse(field.NotSupported(path.Child("type"), in.Type, kinds))
			continue
		}
		d := libvirtxml.DomainInput{Type: string(in.Type), Bus: string(in.Bus), Alias: c.alias(in.Name, path.Child("name"))}
		switch in.Bus {
		case v1.InputBusVirtio:
			d.Model = v1.VirtIO
		case v1.InputBusUSB, "":
			d.Bus = string(v1.InputBusUSB)
		default:
			c.refuse(field.NotSupported(path.Child("bus"), in.Bus, []v1.InputBus{v1.InputBusUSB, v1.InputBusVirtio}))
		}
		l = append(l, d)
	}
	return l
}

func (c *converter) balloon() *libvirtxml.DomainMemBalloon {
	if !on(c.spec().Devices.AutoattachMemBalloon) {
		return &libvirtxml.DomainMemBalloon{Model: "none"}
	}
	return &libvirtxml.DomainMemBalloon{
		Model: c.virtio(), FreePageReporting: "on", Stats: &libvirtxml.DomainMemBalloonStats{Period: balloonPeriod},
	}
}

func (c *converter) rngs() []libvirtxml.DomainRNG {
	if c.spec().Devices.Rng == nil {
		return nil
	}
	random := &libvirtxml.DomainRNGBackendRandom{Device: "/dev/urandom"}
	return []libvirtxml.DomainRNG{{Model: c.virtio(), Backend: &libvirtxml.DomainRNGBackend{Random: random}}}
}

func (c *converter) watchdogs() []libvirtxml.DomainWatchdog {
	w := c.spec().Devices.Watchdog
	if w == nil {
		return nil
	}
	path := c.path.Child("devices", "watchdog")
	if w.I6300ESB == nil {
		c.refuse(field.Required(path.Child("i6300esb"), "the one watchdog of this architecture"))
		return nil
	}
	action := w.I6300ESB.Action
	if action == "" {
		action = v1.WatchdogActionReset
	}
	return []libvirtxml.DomainWatchdog{{Model: "i6300esb", Action: string(action), Alias: c.alias(w.Name, path.Child("name"))}}
}

// controllers gives the machine only the buses it needs, and root ports for its devices and for some that may come.
func (c *converter) controllers(l *libvirtxml.DomainDeviceList) []libvirtxml.DomainController {
	usb := libvirtxml.DomainController{Type: "usb", Index: ptr(uint(0)), Model: "none"}
	for _, in := range l.Inputs {
		if in.Bus == string(v1.InputBusUSB) {
			usb.Model = "qemu-xhci"
		}
	}
	out := []libvirtxml.DomainController{usb}
	onSCSI := func(d libvirtxml.DomainDisk) bool { return d.Target.Bus == string(v1.DiskBusSCSI) }
	if slices.ContainsFunc(l.Disks, onSCSI) {
		out = append(out, libvirtxml.DomainController{Type: "scsi", Index: ptr(uint(0)), Model: c.virtio()})
	}
	out = append(out, libvirtxml.DomainController{Type: "virtio-serial", Index: ptr(uint(0)), Model: c.virtio()})
	if c.spec().Devices.DisableHotplug {
		return out // libvirt makes the ports that the devices need
	}
	out = append(out, libvirtxml.DomainController{Type: "pci", Index: ptr(uint(0)), Model: "pcie-root"})
	for range c.rootPorts(l, len(out)-2) {
		out = append(out, libvirtxml.DomainController{Type: "pci", Model: "pcie-root-port"})
	}
	return out
}

// rootPorts counts a port for each device on one and the free ones: as many as make 8 in all but at least 3, or 16 and
// 6 for a guest of more than 2 GiB; never more than 30.
func (c *converter) rootPorts(l *libvirtxml.DomainDeviceList, controllers int) int {
	used := controllers + len(l.Interfaces) + len(l.RNGs) + len(l.Watchdogs)
	if l.MemBalloon.Model != "none" {
		used++
	}
	for _, d := range l.Disks {
		if d.Target.Bus == string(v1.DiskBusVirtio) {
			used++
		}
	}
	for _, in := range l.Inputs {
		if in.Bus == string(v1.InputBusVirtio) {
			used++
		}
	}
	total, free := 8, 3
	if q, _ := c.guestMemory(); q != nil && q.Value() > 2<<30 {
		total, free = 16, 6
	}
	return min(max(total, used+free), max(30, used))
}
