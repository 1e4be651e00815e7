package domain

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

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
	return append(l, c.pointers(l)...)
}

// pointers are what a screen comes with on a machine that has no keyboard and no mouse of its own.
func (c *converter) pointers(have []libvirtxml.DomainInput) []libvirtxml.DomainInput {
	if !c.arch.pointer || !on(c.spec().Devices.AutoattachGraphicsDevice) {
		return nil
	}
	keyboard := libvirtxml.DomainInput{Type: string(v1.InputTypeKeyboard), Bus: string(v1.InputBusUSB)}
	isTablet := func(in libvirtxml.DomainInput) bool { return in.Type == string(v1.InputTypeTablet) }
	if slices.ContainsFunc(have, isTablet) {
		return []libvirtxml.DomainInput{keyboard}
	}
	return []libvirtxml.DomainInput{{Type: string(v1.InputTypeTablet), Bus: string(v1.InputBusUSB)}, keyboard}
}
