package plan

import (
	"runtime"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"

	"virtstack.io/virtstack/nodeagent/host"
)

// ours are the keys whose every label on a node is the node agent's: one that is no longer true is taken away.
var ours = []string{
	v1.CPUModelLabel, v1.SupportedHostModelMigrationCPU, v1.CPUFeatureLabel, v1.HostModelCPULabel, v1.HostModelRequiredFeaturesLabel,
	v1.CPUModelVendorLabel, v1.NodeHostModelIsObsoleteLabel, v1.CPUTimerLabel, v1.HypervLabel, v1.SupportedMachineTypeLabel, v1.RealtimeLabel,
	v1.CPUManager, v1.DeprecatedCPUManager,
}

func isOurs(key string) bool {
	return slices.ContainsFunc(ours, func(o string) bool {
		return key == o || strings.HasSuffix(o, "/") && strings.HasPrefix(key, o)
	})
}

// enlightenments maps libvirt's names of Hyper-V features to those of the labels.
var enlightenments = map[string][]string{
	"relaxed": {"base"}, "frequencies": {"frequencies"}, "ipi": {"ipi"}, "reenlightenment": {"reenlightenment"},
	"reset": {"reset"}, "runtime": {"runtime"}, "synic": {"synic", "synic2"}, "stimer": {"synictimer", "time"},
	"tlbflush": {"tlbflush"}, "vpindex": {"vpindex"},
}

// set collects labels; what is no label key, a name with a space for one, is left out.
type set map[string]string

func (s set) add(key, value string) {
	if len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0 {
		s[key] = value
	}
}

// Labels returns what a node can do as labels, for guests that run on KVM where there is one or, if emulated is set, don't
// even there; models in obsolete are not offered.
func Labels(f host.Facts, emulated bool, obsolete map[string]bool) map[string]string {
	s := set{}
	s.machines(f.Host)
	domain := f.Domain(emulated)
	if domain.CPU != nil {
		for _, mode := range domain.CPU.Modes {
			s.mode(mode, obsolete)
		}
	}
	if f.KVM && !emulated {
		s.hyperv(domain.Features)
	}
	if f.Realtime {
		s.add(v1.RealtimeLabel, "true")
	}
	if cpu := f.Host.Host.CPU; cpu != nil && cpu.Counter != nil && cpu.Counter.Name == "tsc" {
		s.add(v1.CPUTimerLabel+"tsc-frequency", strconv.FormatUint(uint64(cpu.Counter.Frequency), 10))
		s.add(v1.CPUTimerLabel+"tsc-scalable", strconv.FormatBool(cpu.Counter.Scaling == "yes"))
	}
	return s
}

func (s set) mode(mode libvirtxml.DomainCapsCPUMode, obsolete map[string]bool) {
	switch {
	case mode.Supported != "yes":
	case mode.Name == "custom":
		for _, m := range mode.Models {
			if obsolete[m.Name] {
				continue
			}
			s.add(v1.SupportedHostModelMigrationCPU+m.Name, "true")
			if m.Usable == "yes" {
				s.add(v1.CPUModelLabel+m.Name, "true")
			}
		}
	case mode.Name == "host-model":
		s.hostModel(mode, obsolete)
	}
}

func (s set) hostModel(mode libvirtxml.DomainCapsCPUMode, obsolete map[string]bool) {
	for _, m := range mode.Models {
		s.add(v1.HostModelCPULabel+m.Name, "true")
		if obsolete[m.Name] {
			s.add(v1.NodeHostModelIsObsoleteLabel, "true")
		}
	}
	s.add(v1.CPUModelVendorLabel+mode.Vendor, "true")
	for _, f := range mode.Features {
		if f.Policy == "require" {
			s.add(v1.HostModelRequiredFeaturesLabel+f.Name, "true")
			s.add(v1.CPUFeatureLabel+f.Name, "true")
		}
	}
}

func (s set) hyperv(f *libvirtxml.DomainCapsFeatures) {
	if f == nil || f.HyperV == nil || f.HyperV.Supported != "yes" {
		return
	}
	for _, e := range f.HyperV.Enums {
		for _, v := range e.Values {
			for _, name := range enlightenments[v] {
				s.add(v1.HypervLabel+name, "true")
			}
		}
	}
}

// machinesOf are the machine types that our guests may have, by the node's architecture; the rest of QEMU's, such as
// microvm, are no use to a VM.
var machinesOf = map[string][]string{
	"amd64": {"q35", "pc-q35-"}, "arm64": {"virt"}, "s390x": {"s390-ccw-virtio"},
}

func (s set) machines(caps libvirtxml.Caps) {
	for _, g := range caps.Guests {
		if caps.Host.CPU == nil || g.Arch.Name != caps.Host.CPU.Arch {
			continue
		}
		for _, m := range g.Arch.Machines {
			if offered(m.Name) {
				s.add(v1.SupportedMachineTypeLabel+m.Name, "true")
			}
		}
	}
}

func offered(machine string) bool {
	return slices.ContainsFunc(machinesOf[runtime.GOARCH], func(p string) bool { return strings.HasPrefix(machine, p) })
}
