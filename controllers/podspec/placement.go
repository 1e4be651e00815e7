package podspec

import (
	"maps"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
)

// nodeSelector asks for a node whose agent serves and whose QEMU has what the VMI names.
func nodeSelector(vmi *v1.VirtualMachineInstance, cfg config.Config) map[string]string {
	out := map[string]string{}
	maps.Copy(out, cfg.NodeSelectors)
	maps.Copy(out, vmi.Spec.NodeSelector)
	out[names.Schedulable] = "true"
	out[k8sv1.LabelArchStable] = vmi.Spec.Architecture
	if m := vmi.Spec.Domain.Machine; m != nil && m.Type != "" {
		out[v1.SupportedMachineTypeLabel+m.Type] = "true"
	}
	cpu := vmi.Spec.Domain.CPU
	if cpu != nil && cpu.DedicatedCPUPlacement {
		out[v1.CPUManager] = "true"
	}
	if cpu != nil && cpu.Realtime != nil {
		out[v1.RealtimeLabel] = "true"
	}
	selectHyperv(out, vmi, cfg)
	if !namedModel(cpu) {
		return out
	}
	out[v1.CPUModelLabel+cpu.Model] = "true"
	for _, f := range cpu.Features {
		if f.Policy == "" || f.Policy == "require" {
			out[v1.CPUFeatureLabel+f.Name] = "true"
		}
	}
	return out
}

// hypervStrict is the feature gate that sends guests to nodes whose KVM has every enlightenment that they ask for.
const hypervStrict = "HypervStrictCheck"

func selectHyperv(out map[string]string, vmi *v1.VirtualMachineInstance, cfg config.Config) {
	f := vmi.Spec.Domain.Features
	if f == nil || f.Hyperv == nil {
		return
	}
	h := f.Hyperv
	has := func(s *v1.FeatureState) bool { return s != nil && (s.Enabled == nil || *s.Enabled) }
	if has(h.EVMCS) {
		out[v1.CPUModelVendorLabel+"Intel"] = "true"
	}
	if !cfg.Enabled(hypervStrict) {
		return
	}
	for name, asked := range map[string]bool{
		"vpindex": has(h.VPIndex), "runtime": has(h.Runtime), "reset": has(h.Reset), "synic": has(h.SyNIC), "frequencies": has(h.Frequencies),
		"reenlightenment": has(h.Reenlightenment), "ipi": has(h.IPI),
		"synictimer": h.SyNICTimer != nil && (h.SyNICTimer.Enabled == nil || *h.SyNICTimer.Enabled),
		"tlbflush":   h.TLBFlush != nil && (h.TLBFlush.Enabled == nil || *h.TLBFlush.Enabled),
	} {
		if asked {
			out[v1.HypervLabel+name] = "true"
		}
	}
}

func namedModel(c *v1.CPU) bool {
	return c != nil && c.Model != "" && c.Model != v1.CPUModeHostModel && c.Model != v1.CPUModeHostPassthrough
}

// affinity is the VMI's, with what labels alone can't say added to each required node term: no node whose host model
// is obsolete for a VMI that takes the host's model, none that has a forbidden CPU feature.
func affinity(vmi *v1.VirtualMachineInstance) *k8sv1.Affinity {
	var absent []string
	c := vmi.Spec.Domain.CPU
	if c == nil || c.Model == "" || c.Model == v1.CPUModeHostModel {
		absent = append(absent, v1.NodeHostModelIsObsoleteLabel)
	}
	if c != nil {
		for _, f := range c.Features {
			if f.Policy == "forbid" {
				absent = append(absent, v1.CPUFeatureLabel+f.Name)
			}
		}
	}
	out := vmi.Spec.Affinity.DeepCopy()
	if len(absent) == 0 {
		return out
	}
	if out == nil {
		out = &k8sv1.Affinity{}
	}
	if out.NodeAffinity == nil {
		out.NodeAffinity = &k8sv1.NodeAffinity{}
	}
	required := &out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &k8sv1.NodeSelector{NodeSelectorTerms: []k8sv1.NodeSelectorTerm{{}}}
	}
	for i := range (*required).NodeSelectorTerms {
		term := &(*required).NodeSelectorTerms[i]
		for _, key := range absent {
			term.MatchExpressions = append(term.MatchExpressions, k8sv1.NodeSelectorRequirement{Key: key, Operator: k8sv1.NodeSelectorOpDoesNotExist})
		}
	}
	return out
}
