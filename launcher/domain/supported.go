package domain

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// refuseUnsupported names every part of the spec that would change the machine and that this build can't make.
func (c *converter) refuseUnsupported() {
	s, devices := c.spec(), c.path.Child("devices")
	d := &s.Devices
	for _, r := range []struct {
		path  *field.Path
		found bool
	}{
		{c.path.Child("launchSecurity"), s.LaunchSecurity != nil},
		{devices.Child("clientPassthrough"), d.ClientPassthrough != nil},
	} {
		if r.found {
			c.refuse(field.Forbidden(r.path, "not supported yet: leave it out"))
		}
	}
}
