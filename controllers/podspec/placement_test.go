package podspec_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/controllers/podspec"
	"virtstack.io/virtstack/machine/config"
)

// machineWith is a VMI with more in spec.domain.
func machineWith(t *testing.T, domain string) *v1.VirtualMachineInstance {
	t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	vmi.Name, vmi.Namespace, vmi.UID = "web", "cases", "one"
	if err := yaml.UnmarshalStrict([]byte("{devices: {}, memory: {guest: 1Gi, hugepages: {pageSize: 2Mi}}, "+domain+"}"), &vmi.Spec.Domain); err != nil {
		t.Fatal(err)
	}
	return vmi
}

// Labels of nodes that a guest's CPU and features ask for.
func TestNodesForACPUAndFeatures(t *testing.T) {
	strict := config.From(&v1.KubeVirt{Spec: v1.KubeVirtSpec{Configuration: v1.KubeVirtConfiguration{
		DeveloperConfiguration: &v1.DeveloperConfiguration{FeatureGates: []string{"HypervStrictCheck"}},
	}}})
	const hyperv = "features: {hyperv: {synictimer: {}, relaxed: {}, reset: {enabled: false}, evmcs: {}}}"
	for name, tc := range map[string]struct {
		domain string
		cfg    config.Config
		want   string
	}{
		"nothing":                  {"features: {}", strict, ""},
		"CPUs for itself":          {"cpu: {cores: 2, dedicatedCpuPlacement: true}", config.From(nil), "kubevirt.io/cpumanager"},
		"enlightenments":           {hyperv, config.From(nil), "cpu-vendor.node.kubevirt.io/Intel"},
		"enlightenments, strictly": {hyperv, strict, "cpu-vendor.node.kubevirt.io/Intel hyperv.node.kubevirt.io/synic hyperv.node.kubevirt.io/synictimer hyperv.node.kubevirt.io/vpindex"},
	} {
		pod, err := podspec.Render(machineWith(t, tc.domain), tc.cfg, image, claims)
		if err != nil {
			t.Fatal(err)
		}
		always := []string{"kubevirt.io/schedulable", k8sv1.LabelArchStable, "machine-type.node.kubevirt.io/q35"}
		var got []string
		for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
			if !slices.Contains(always, key) {
				got = append(got, key)
			}
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: selects %s, want %s", name, s, tc.want)
		}
	}
}

func TestTheNodesNUMACellsNeedASeccompProfile(t *testing.T) {
	vmi := machineWith(t, "cpu: {cores: 2, dedicatedCpuPlacement: true, numa: {guestMappingPassthrough: {}}}")
	_, err := podspec.Render(vmi, config.From(nil), image, claims)
	var unsupported *podspec.UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Field != "spec.domain.cpu.numa.guestMappingPassthrough" {
		t.Errorf("got %v", err)
	}
	file, cfg := "virtstack.json", config.From(nil)
	cfg.Seccomp = &k8sv1.SeccompProfile{Type: k8sv1.SeccompProfileTypeLocalhost, LocalhostProfile: &file}
	pod, err := podspec.Render(vmi, cfg, image, claims)
	if err != nil || *pod.Spec.SecurityContext.SeccompProfile.LocalhostProfile != file {
		t.Errorf("got %v, %v", pod, err)
	}
}
