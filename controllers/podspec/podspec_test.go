package podspec_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/machine/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const image = "virt-launcher:test"

// claims are those that the VMIs of testdata name.
var claims = podspec.Claims{"data": false, "raw": true, "golden": false, "dumps": false}

// emulated is the configuration of a node without KVM.
func emulated() config.Config {
	cfg := config.From(&v1.KubeVirt{Spec: v1.KubeVirtSpec{Configuration: v1.KubeVirtConfiguration{
		DeveloperConfiguration:    &v1.DeveloperConfiguration{UseEmulation: true, NodeSelectors: map[string]string{"guests": "yes"}},
		NetworkConfiguration:      &v1.NetworkConfiguration{NetworkInterface: "masquerade"},
		ArchitectureConfiguration: &v1.ArchConfiguration{DefaultArchitecture: "amd64"},
		SeccompConfiguration: &v1.SeccompConfiguration{VirtualMachineInstanceProfile: &v1.VirtualMachineInstanceProfile{
			CustomProfile: &v1.CustomProfile{RuntimeDefaultProfile: true},
		}},
		PermittedHostDevices: &v1.PermittedHostDevices{
			PciHostDevices:  []v1.PciHostDevice{{ResourceName: "vendor.example/nic", ExternalResourceProvider: true}},
			MediatedDevices: []v1.MediatedHostDevice{{ResourceName: "vendor.example/card", ExternalResourceProvider: true}},
			USB:             []v1.USBHostDevice{{ResourceName: "vendor.example/key", ExternalResourceProvider: true}},
		},
	}}})
	return cfg
}

func read(t *testing.T, path string) *v1.VirtualMachineInstance {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	vmi := &v1.VirtualMachineInstance{}
	if err := yaml.UnmarshalStrict(raw, vmi); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return vmi
}

func TestPods(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.yaml")
	if len(files) == 0 {
		t.Fatal("no testdata")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			vmi := read(t, file)
			before := vmi.DeepCopy()
			pod, err := podspec.Render(vmi, emulated(), image, claims)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, vmi); diff != "" {
				t.Errorf("the VMI was changed (-before +after):\n%s", diff)
			}
			if again, _ := podspec.Render(vmi, emulated(), image, claims); !cmp.Equal(pod, again) {
				t.Errorf("rendered twice:\n%s", cmp.Diff(pod, again))
			}
			valid(t, pod)
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", pod)
		})
	}
}

// valid checks the names that the API server would refuse a Pod for.
func valid(t *testing.T, pod *k8sv1.Pod) {
	t.Helper()
	hostnames := []string{pod.Name, pod.Spec.Hostname}
	for _, v := range pod.Spec.Volumes {
		hostnames = append(hostnames, v.Name)
	}
	for _, name := range hostnames {
		if errs := validation.IsDNS1123Label(name); len(errs) > 0 {
			t.Errorf("%q: %v", name, errs)
		}
	}
	for k, v := range pod.Labels {
		if errs := validation.IsValidLabelValue(v); len(errs) > 0 {
			t.Errorf("label %s=%q: %v", k, v, errs)
		}
	}
}

func golden(t *testing.T, path string, got any) {
	t.Helper()
	raw, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(raw)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestLongNamesGiveTwoPods(t *testing.T) {
	const long = "ledger-archive-node-of-the-northern-region-replica-of-2026-q34-second-copy-zone-"
	pods := map[string]*k8sv1.Pod{}
	for _, tail := range []string{"b", "c"} {
		vmi := &v1.VirtualMachineInstance{}
		vmi.Name, vmi.Namespace, vmi.UID = long+tail, "cases", types.UID("uid-of-"+tail)
		pod, err := podspec.Render(vmi, emulated(), image, claims)
		if err != nil {
			t.Fatal(err)
		}
		valid(t, pod)
		pods[tail] = pod
	}
	if b, c := pods["b"], pods["c"]; b.Name == c.Name || b.Labels[v1.VirtualMachineInstanceIDLabel] == c.Labels[v1.VirtualMachineInstanceIDLabel] {
		t.Errorf("names %s and %s, labels %v and %v", b.Name, c.Name, b.Labels, c.Labels)
	}
}

func TestWhatCantBeRenderedIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		edit  func(*v1.VirtualMachineInstanceSpec)
		field string
	}{
		"hostDisk without its gate": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Volumes = []v1.Volume{{Name: "x", VolumeSource: v1.VolumeSource{HostDisk: &v1.HostDisk{}}}}
		}, "spec.volumes[0].hostDisk"},
		"volume name that leads out": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Volumes = []v1.Volume{{Name: "../etc", VolumeSource: v1.VolumeSource{EmptyDisk: &v1.EmptyDiskSource{}}}}
		}, "spec.volumes[0].name"},
		"kind of volume": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Volumes = []v1.Volume{{Name: "x", VolumeSource: v1.VolumeSource{ContainerPath: &v1.ContainerPathVolumeSource{}}}}
		}, "spec.volumes[0].containerPath"},
		"memory dump that is only read": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Volumes = []v1.Volume{memoryDump("dumps")}
			s.Volumes[0].MemoryDump.ReadOnly = true
		}, "spec.volumes[0].memoryDump.readOnly"},
		"memory dump on a device": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Volumes = []v1.Volume{memoryDump("raw")}
		}, "spec.volumes[0].memoryDump.claimName"},
		"memory dump as a disk": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Volumes = []v1.Volume{memoryDump("dumps")}
			s.Domain.Devices.Disks = []v1.Disk{{Name: "x"}}
		}, "spec.domain.devices.disks[0].name"},
		"downward metrics without their gate": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Volumes = []v1.Volume{{Name: "x", VolumeSource: v1.VolumeSource{DownwardMetrics: &v1.DownwardMetricsVolumeSource{}}}}
		}, "spec.volumes[0].downwardMetrics"},
		"access credentials": {func(s *v1.VirtualMachineInstanceSpec) {
			s.AccessCredentials = []v1.AccessCredential{{UserPassword: &v1.UserPasswordAccessCredential{}}}
			s.AccessCredentials[0].UserPassword.Source.Secret = &v1.AccessCredentialSecretSource{SecretName: "../etc"}
		}, "spec.accessCredentials[0]"},
		"network": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Networks = []v1.Network{{Name: "x", NetworkSource: v1.NetworkSource{Multus: &v1.MultusNetwork{}}}}
		}, "spec.networks[0].multus.networkName"},
		"binding": {func(s *v1.VirtualMachineInstanceSpec) {
			s.Domain.Devices.Interfaces = []v1.Interface{{Name: "x", InterfaceBindingMethod: v1.InterfaceBindingMethod{SRIOV: &v1.InterfaceSRIOV{}}}}
		}, "spec.domain.devices.interfaces[0].sriov"},
		"probe": {func(s *v1.VirtualMachineInstanceSpec) {
			s.LivenessProbe = &v1.Probe{Handler: v1.Handler{Exec: &k8sv1.ExecAction{}}}
		}, "spec.livenessProbe"},
	} {
		vmi := &v1.VirtualMachineInstance{}
		vmi.Name = "web"
		tc.edit(&vmi.Spec)
		_, err := podspec.Render(vmi, emulated(), image, claims)
		var unsupported *podspec.UnsupportedError
		if !errors.As(err, &unsupported) || unsupported.Field != tc.field {
			t.Errorf("%s: got %v, want field %s", name, err, tc.field)
		}
	}
}

func memoryDump(claim string) v1.Volume {
	d := &v1.MemoryDumpVolumeSource{}
	d.ClaimName = claim
	return v1.Volume{Name: "x", VolumeSource: v1.VolumeSource{MemoryDump: d}}
}
