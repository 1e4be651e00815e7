package domain

import (
	"libvirt.org/go/libvirtxml"
)

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

// channels carries the guest agent and, for a guest that asks for them, the figures of its node.
func (c *converter) channels() []libvirtxml.DomainChannel {
	l := []libvirtxml.DomainChannel{channel("org.qemu.guest_agent.0", c.facts.Sockets.Agent)}
	if c.spec().Devices.DownwardMetrics != nil {
		l = append(l, channel("org.github.vhostmd.1", c.facts.Sockets.Metrics))
	}
	return l
}

// channel is a port of the guest, by its name there, behind which QEMU listens on a socket.
func channel(port, socket string) libvirtxml.DomainChannel {
	return libvirtxml.DomainChannel{
		Source: &libvirtxml.DomainChardevSource{UNIX: &libvirtxml.DomainChardevSourceUNIX{Mode: "bind", Path: socket}},
		Target: &libvirtxml.DomainChannelTarget{VirtIO: &libvirtxml.DomainChannelTargetVirtIO{Name: port}},
	}
}
