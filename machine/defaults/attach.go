package defaults

import (
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

// Attach adds the devices that a machine gets without naming them: a disk for every volume that nothing shows to the
// guest, an interface on the Pod's network, and an input device where one is asked for. What kind they are stays open,
// so a preference can fill it first.
func Attach(s *v1.VirtualMachineInstanceSpec, cfg config.Config) {
	attachDisks(s)
	fillNetwork(s, cfg)
	d := &s.Domain.Devices
	if d.AutoattachInputDevice != nil && *d.AutoattachInputDevice && len(d.Inputs) == 0 {
		d.Inputs = []v1.Input{{Name: "default-0"}}
	}
}
