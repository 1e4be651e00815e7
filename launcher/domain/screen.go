package domain

import (
	"libvirt.org/go/libvirtxml"
)

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
	model := libvirtxml.DomainVideoModel{Type: c.arch.video, Heads: 1}
	if c.usesEFI() {
		model.Type = c.arch.efiVideo
	}
	if v := c.spec().Devices.Video; v != nil && v.Type != "" {
		model.Type = v.Type
	}
	if model.Type == "vga" || model.Type == "bochs" {
		model.VRam = 16 << 10 // KiB
	}
	return []libvirtxml.DomainVideo{{Model: model}}
}
