package domain

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

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

// panics are the devices by which a guest says that it crashed.
func (c *converter) panics() []libvirtxml.DomainPanic {
	var l []libvirtxml.DomainPanic
	models := []v1.PanicDeviceModel{v1.Hyperv, v1.Isa, v1.Pvpanic}
	for i, p := range c.spec().Devices.PanicDevices {
		path := c.path.Child("devices", "panicDevices").Index(i).Child("model")
		switch {
		case p.Model == nil:
			c.refuse(field.Required(path, "must be hyperv, isa or pvpanic"))
		case !slices.Contains(models, *p.Model):
			c.refuse(field.NotSupported(path, *p.Model, models))
		default:
			l = append(l, libvirtxml.DomainPanic{Model: string(*p.Model)})
		}
	}
	return l
}
