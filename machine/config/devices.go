package config

import v1 "kubevirt.io/api/core/v1"

// permitted returns the resources of devices of nodes that VMs may have.
func permitted(p *v1.PermittedHostDevices) map[string]bool {
	out := map[string]bool{}
	if p == nil {
		return out
	}
	for _, d := range p.PciHostDevices {
		out[d.ResourceName] = true
	}
	for _, d := range p.MediatedDevices {
		out[d.ResourceName] = true
	}
	for _, d := range p.USB {
		out[d.ResourceName] = true
	}
	return out
}
