package config_test

import (
	"reflect"
	"slices"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

func TestNoKubeVirtGivesTheContractsDefaults(t *testing.T) {
	c := config.From(nil)
	if c.ImagePullPolicy != k8sv1.PullIfNotPresent || c.NetworkInterface != "bridge" || c.CPUAllocationRatio != 10 {
		t.Errorf("defaults: got %+v", c)
	}
	if got := c.MachineType("amd64"); got != "q35" {
		t.Errorf("machine type of amd64: got %q, want q35", got)
	}
	if !c.ObsoleteCPUModels["Conroe-v1"] {
		t.Error("Conroe-v1 isn't obsolete")
	}
}

func TestTheCROverridesDefaults(t *testing.T) {
	kv := &v1.KubeVirt{}
	kv.Spec.Configuration = v1.KubeVirtConfiguration{
		NetworkConfiguration:      &v1.NetworkConfiguration{NetworkInterface: "masquerade"},
		ArchitectureConfiguration: &v1.ArchConfiguration{Amd64: &v1.ArchSpecificConfiguration{MachineType: "pc-q35-10.0"}},
		DeveloperConfiguration: &v1.DeveloperConfiguration{
			UseEmulation: true, CPUAllocationRatio: 20,
			FeatureGates: []string{"Snapshot"}, DisabledFeatureGates: []string{"ImageVolume", "HostDisk"},
		},
	}
	period := uint32(0)
	kv.Spec.Configuration.MemBalloonStatsPeriod = &period
	kv.Spec.Configuration.VirtualMachineOptions = &v1.VirtualMachineOptions{DisableFreePageReporting: &v1.DisableFreePageReporting{}}
	kv.Spec.Configuration.PermittedHostDevices = &v1.PermittedHostDevices{PciHostDevices: []v1.PciHostDevice{{ResourceName: "vendor.example/nic"}}}
	c := config.From(kv)
	if c.BalloonPeriod != 0 || !c.KeepFreePages || !c.PermittedDevices["vendor.example/nic"] || c.PermittedDevices["vendor.example/gpu"] {
		t.Errorf("devices: got %+v", c)
	}
	if !c.UseEmulation || c.NetworkInterface != "masquerade" || c.CPUAllocationRatio != 20 || c.MemoryOvercommit != 100 {
		t.Errorf("got %+v", c)
	}
	if got := c.MachineType("amd64"); got != "pc-q35-10.0" {
		t.Errorf("machine type of amd64: got %q, want pc-q35-10.0", got)
	}
	for gate, want := range map[string]bool{"Snapshot": true, "HostDisk": false, "ImageVolume": true} {
		if got := c.Enabled(gate); got != want {
			t.Errorf("gate %s: got %v, want %v", gate, got, want)
		}
	}
}

func TestTheSeccompProfileOfLaunchers(t *testing.T) {
	file := "profiles/launcher.json"
	for name, tc := range map[string]struct {
		profile *v1.CustomProfile
		want    *k8sv1.SeccompProfile
	}{
		"none":          {nil, nil},
		"an empty one":  {&v1.CustomProfile{}, nil},
		"a file":        {&v1.CustomProfile{LocalhostProfile: &file}, &k8sv1.SeccompProfile{Type: "Localhost", LocalhostProfile: &file}},
		"the runtime's": {&v1.CustomProfile{RuntimeDefaultProfile: true}, &k8sv1.SeccompProfile{Type: "RuntimeDefault"}},
	} {
		kv := &v1.KubeVirt{}
		kv.Spec.Configuration.SeccompConfiguration = &v1.SeccompConfiguration{VirtualMachineInstanceProfile: &v1.VirtualMachineInstanceProfile{CustomProfile: tc.profile}}
		if got := config.From(kv).Seccomp; !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}

func TestCPUsAreAlignedWhereTheGateIsOnToo(t *testing.T) {
	kv := &v1.KubeVirt{}
	kv.Annotations = map[string]string{v1.EmulatorThreadCompleteToEvenParity: ""}
	if config.From(kv).AlignCPUs {
		t.Error("aligned without the gate")
	}
	kv.Spec.Configuration.DeveloperConfiguration = &v1.DeveloperConfiguration{FeatureGates: []string{"AlignCPUs"}}
	if !config.From(kv).AlignCPUs {
		t.Error("not aligned")
	}
}

func TestTheRatioOfOverhead(t *testing.T) {
	for text, want := range map[string]float64{"1.5": 1.5, "2": 2, "0.5": 1, "": 1, "NaN": 1, "much": 1} {
		kv := &v1.KubeVirt{}
		kv.Spec.Configuration.AdditionalGuestMemoryOverheadRatio = &text
		if got := config.From(kv).OverheadRatio; got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// What a KubeVirt asks for in vain is named; what it leaves open, or what is done, isn't.
func TestWhatIsIgnoredIsNamed(t *testing.T) {
	kv := &v1.KubeVirt{}
	kv.Spec.Configuration.MigrationConfiguration = &v1.MigrationConfiguration{}
	kv.Spec.Configuration.DeveloperConfiguration = &v1.DeveloperConfiguration{UseEmulation: true, FeatureGates: config.Gates}
	if got := config.Ignored(kv); len(got) > 0 {
		t.Errorf("got %q for what is done, or empty", got)
	}
	bandwidth := resource.MustParse("1Gi")
	kv.Spec.ProductName = "shop"
	kv.Spec.Configuration.MigrationConfiguration.BandwidthPerMigration = &bandwidth
	kv.Spec.Configuration.OVMFPath = "/usr/share/OVMF"
	kv.Spec.Configuration.DeveloperConfiguration.DisabledFeatureGates = []string{"NonRoot"}
	want := []string{
		"spec.configuration.migrations has no effect in this version",
		"spec.configuration.ovmfPath has no effect in this version: firmware comes with the launcher's image",
		"spec.productName has no effect in this version",
		`spec.configuration.developerConfiguration.disabledFeatureGates[0] has no effect in this version: "NonRoot" stands for what is always so, or isn't there`,
	}
	if got := config.Ignored(kv); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
