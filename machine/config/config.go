// Package config is the effective configuration of an install: what the KubeVirt CR says, filled with the defaults of
// the contract. Every component watches the CR and asks anew; nothing is cached here.
package config

import (
	"maps"
	"runtime"
	"strconv"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/release"
)

// Config is what the rules and loops ask for. It holds copies: changing it changes no KubeVirt.
type Config struct {
	ImagePullPolicy k8sv1.PullPolicy
	// UseEmulation runs guests without KVM.
	UseEmulation bool
	// CPURequest is what a launcher Pod requests for a VMI that says nothing; nil: by CPUAllocationRatio.
	CPURequest *resource.Quantity
	// CPUModel is the model of a VMI that names none; empty: the launcher's choice.
	CPUModel string
	// CPUAllocationRatio is how many vCPUs share one requested CPU.
	CPUAllocationRatio int
	// MemoryOvercommit is guest memory in percent of what is requested for it.
	MemoryOvercommit int
	// OverheadRatio multiplies what launchers are thought to need beside guest memory; at least 1.
	OverheadRatio float64
	// NodeSelectors narrow the nodes of every launcher Pod.
	NodeSelectors map[string]string
	// Architecture is that of a VMI that names none.
	Architecture string
	// EvictionStrategy is that of a VMI that names none.
	EvictionStrategy v1.EvictionStrategy
	// NetworkInterface is the binding of the interface that a VMI without any gets: bridge or masquerade.
	NetworkInterface string
	// BridgeOnPodNetwork permits the bridge binding there.
	BridgeOnPodNetwork bool
	// SMBIOS is what guests read about their maker.
	SMBIOS v1.SMBiosConfiguration
	// RuntimeClass is that of launcher Pods; empty: the cluster's default.
	RuntimeClass string
	// Seccomp is the profile of launcher Pods that the administrator has chosen; nil: none, so that it is the container
	// runtime's own.
	Seccomp *k8sv1.SeccompProfile
	// AlignCPUs gives a VMI that isolates QEMU's threads an even number of CPUs.
	AlignCPUs bool
	// ObsoleteCPUModels aren't offered as node labels.
	ObsoleteCPUModels map[string]bool
	// DevicesPerNode is how many of each device a node offers.
	DevicesPerNode int
	// Rollout says whether changes of a running VM's spec are applied live.
	Rollout v1.VMRolloutStrategy
	// HostDiskDirs are the directories of nodes in which a VM may have a hostDisk, each exactly as its owner must write it.
	HostDiskDirs []string
	// GitManagers are further field managers, beside the Git tools that are known, that write what a commit says.
	GitManagers []string
	// PermittedDevices are the resources of devices of nodes that a VM may have for itself.
	PermittedDevices map[string]bool
	// BalloonPeriod is how often guests are asked for their memory figures, in seconds; 0: never.
	BalloonPeriod uint32
	// StateStorageClass is that of claims on which VMs keep their TPM and their firmware's variables; empty: the cluster's.
	StateStorageClass string
	// KeepFreePages says that pages which guests don't use are not given back to the node.
	KeepFreePages bool

	machines map[string]string
	emulated map[string][]string
	gates    map[string]bool
}

// From returns the effective configuration; nil, for a cluster whose KubeVirt isn't seen yet, gives the defaults.
func From(kv *v1.KubeVirt) Config {
	c := defaults()
	if kv == nil {
		return c
	}
	k := kv.Spec.Configuration.DeepCopy()
	set(&c.ImagePullPolicy, k.ImagePullPolicy)
	set(&c.ImagePullPolicy, kv.Spec.ImagePullPolicy)
	set(&c.CPUModel, k.CPUModel)
	set(&c.RuntimeClass, k.DefaultRuntimeClass)
	set(&c.StateStorageClass, k.VMStateStorageClass)
	c.CPURequest = k.CPURequest
	setPtr(&c.EvictionStrategy, k.EvictionStrategy)
	setPtr(&c.DevicesPerNode, k.VirtualMachineInstancesPerNode)
	setPtr(&c.Rollout, k.VMRolloutStrategy)
	if k.ObsoleteCPUModels != nil {
		c.ObsoleteCPUModels = k.ObsoleteCPUModels
	}
	c.Seccomp = seccomp(k.SeccompConfiguration)
	c.HostDiskDirs = hostDiskDirs(kv.Annotations)
	c.GitManagers = listed(kv.Annotations, GitManagersAnnotation)
	c.PermittedDevices = permitted(k.PermittedHostDevices)
	setPtr(&c.BalloonPeriod, k.MemBalloonStatsPeriod)
	c.KeepFreePages = k.VirtualMachineOptions != nil && k.VirtualMachineOptions.DisableFreePageReporting != nil
	_, align := kv.Annotations[v1.EmulatorThreadCompleteToEvenParity]
	c.developer(k.DeveloperConfiguration)
	c.network(k.NetworkConfiguration)
	c.smbios(k.SMBIOSConfig)
	c.architecture(k)
	if ratio, err := strconv.ParseFloat(text(k.AdditionalGuestMemoryOverheadRatio), 64); err == nil && ratio >= 1 {
		c.OverheadRatio = ratio
	}
	c.AlignCPUs = align && c.Enabled("AlignCPUs")
	return c
}

// MachineType returns the machine type of a VMI that names none; an unknown architecture has none.
func (c Config) MachineType(arch string) string { return c.machines[arch] }

// EmulatedMachines returns the patterns (path.Match) of the machine types that VMIs of an architecture may name; an
// unknown architecture has none.
func (c Config) EmulatedMachines(arch string) []string { return c.emulated[arch] }

// Enabled tells whether a feature gate is on.
func (c Config) Enabled(gate string) bool { return c.gates[gate] }

func defaults() Config {
	return Config{
		ImagePullPolicy:    k8sv1.PullIfNotPresent,
		CPUAllocationRatio: 10,
		MemoryOvercommit:   100,
		OverheadRatio:      1,
		Architecture:       runtime.GOARCH,
		EvictionStrategy:   v1.EvictionStrategyNone,
		NetworkInterface:   string(v1.BridgeInterface),
		BridgeOnPodNetwork: true,
		SMBIOS:             v1.SMBiosConfiguration{Family: "KubeVirt", Manufacturer: "KubeVirt", Product: "None", Version: release.Version},
		ObsoleteCPUModels:  obsolete(),
		DevicesPerNode:     1000,
		BalloonPeriod:      10,
		Rollout:            v1.VMRolloutStrategyLiveUpdate,
		machines:           map[string]string{"amd64": "q35", "arm64": "virt", "s390x": "s390-ccw-virtio"},
		emulated: map[string][]string{
			"amd64": {"q35*", "pc-q35*"}, "arm64": {"virt*"}, "s390x": {"s390-ccw-virtio*"},
		},
		gates: map[string]bool{"ImageVolume": true},
	}
}

func (c *Config) developer(d *v1.DeveloperConfiguration) {
	if d == nil {
		return
	}
	c.UseEmulation = d.UseEmulation
	set(&c.CPUAllocationRatio, d.CPUAllocationRatio)
	set(&c.MemoryOvercommit, d.MemoryOvercommit)
	c.NodeSelectors = d.NodeSelectors
	for _, g := range d.FeatureGates {
		c.gates[g] = true
	}
	for _, g := range d.DisabledFeatureGates {
		c.gates[g] = g == "ImageVolume"
	}
}

func (c *Config) network(n *v1.NetworkConfiguration) {
	if n == nil {
		return
	}
	set(&c.NetworkInterface, n.NetworkInterface)
	setPtr(&c.BridgeOnPodNetwork, n.PermitBridgeInterfaceOnPodNetwork)
}

func (c *Config) smbios(s *v1.SMBiosConfiguration) {
	if s == nil {
		return
	}
	set(&c.SMBIOS.Family, s.Family)
	set(&c.SMBIOS.Manufacturer, s.Manufacturer)
	set(&c.SMBIOS.Product, s.Product)
	set(&c.SMBIOS.Sku, s.Sku)
	set(&c.SMBIOS.Version, s.Version)
}

func (c *Config) architecture(k *v1.KubeVirtConfiguration) {
	set(&c.Architecture, archDefault(k.ArchitectureConfiguration))
	machines, emulated := maps.Clone(c.machines), maps.Clone(c.emulated)
	if len(k.EmulatedMachines) > 0 {
		emulated["amd64"] = k.EmulatedMachines
	}
	if k.MachineType != "" {
		machines["amd64"] = k.MachineType
	}
	if a := k.ArchitectureConfiguration; a != nil {
		for arch, s := range map[string]*v1.ArchSpecificConfiguration{"amd64": a.Amd64, "arm64": a.Arm64, "s390x": a.S390x} {
			if s != nil && s.MachineType != "" {
				machines[arch] = s.MachineType
			}
			if s != nil && len(s.EmulatedMachines) > 0 {
				emulated[arch] = s.EmulatedMachines
			}
		}
	}
	c.machines, c.emulated = machines, emulated
}

func archDefault(a *v1.ArchConfiguration) string {
	if a == nil {
		return ""
	}
	return a.DefaultArchitecture
}

func obsolete() map[string]bool {
	out := map[string]bool{}
	for _, m := range []string{
		"486", "pentium", "pentium2", "pentium3", "pentiumpro", "coreduo", "n270", "core2duo", "Conroe", "athlon",
		"phenom", "qemu64", "qemu32", "kvm64", "kvm32", "Opteron_G1", "Opteron_G2",
	} {
		out[m], out[m+"-v1"] = true, true
	}
	return out
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// set overwrites a default with what the CR says, if it says something.
func set[T comparable](to *T, from T) {
	var zero T
	if from != zero {
		*to = from
	}
}

func setPtr[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}
