package defaults

import (
	"slices"

	v1 "kubevirt.io/api/core/v1"
)

// fillHyperv adds what the enlightenments that a guest has need of others, unless those are turned off.
func fillHyperv(d *v1.DomainSpec) {
	if d.Features == nil || d.Features.Hyperv == nil {
		return
	}
	h := d.Features.Hyperv
	need := func(needed **v1.FeatureState, by bool) {
		if yes := true; by && *needed == nil {
			*needed = &v1.FeatureState{Enabled: &yes}
		}
	}
	need(&h.SyNIC, h.SyNICTimer != nil && isOn(h.SyNICTimer.Enabled))
	need(&h.VPIndex, isFeature(h.SyNIC) || isFeature(h.IPI) || h.TLBFlush != nil && isOn(h.TLBFlush.Enabled))
	need(&h.VAPIC, isFeature(h.EVMCS))
	named := func(f v1.CPUFeature) bool { return f.Name == "vmx" }
	if isFeature(h.EVMCS) && !slices.ContainsFunc(d.CPU.Features, named) {
		d.CPU.Features = append(d.CPU.Features, v1.CPUFeature{Name: "vmx", Policy: "require"})
	}
}

func isFeature(f *v1.FeatureState) bool { return f != nil && isOn(f.Enabled) }

func isOn(b *bool) bool { return b == nil || *b }
