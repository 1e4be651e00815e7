package podspec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/podspec"
)

func TestNetworksThatAPodIsAttachedTo(t *testing.T) {
	const networks, byDefault = "k8s.v1.cni.cncf.io/networks", "v1.multus-cni.io/default-network"
	const istio, reroute = "traffic.sidecar.istio.io/kubevirtInterfaces", "istio.io/reroute-virtual-interfaces"
	masquerade := v1.InterfaceBindingMethod{Masquerade: &v1.InterfaceMasquerade{}}
	bridge := v1.InterfaceBindingMethod{Bridge: &v1.InterfaceBridge{}}
	pod := v1.Network{Name: "default", NetworkSource: v1.NetworkSource{Pod: &v1.PodNetwork{}}}
	multus := func(name, of string) v1.Network {
		return v1.Network{Name: name, NetworkSource: v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: of}}}
	}
	main := multus("default", "infra/main")
	main.Multus.Default = true
	for name, tc := range map[string]struct {
		networks   []v1.Network
		interfaces []v1.Interface
		want       map[string]string
	}{
		"the Pod's alone": {
			[]v1.Network{pod}, []v1.Interface{{Name: "default", InterfaceBindingMethod: masquerade}},
			map[string]string{istio: "k6t-eth0", reroute: "k6t-eth0"},
		},
		"two more": {
			[]v1.Network{pod, multus("red", "red-net"), multus("blue", "infra/blue-net")},
			[]v1.Interface{
				{Name: "blue", InterfaceBindingMethod: bridge, MacAddress: "02-00-5E-00-53-0A"}, {Name: "default", InterfaceBindingMethod: bridge},
				{Name: "red", InterfaceBindingMethod: bridge},
			},
			map[string]string{networks: `[{"name":"red-net","namespace":"vms","interface":"podb1f51a511f1"},` +
				`{"name":"blue-net","namespace":"infra","interface":"pod16477688c0e","mac":"02:00:5e:00:53:0a"}]`},
		},
		"one that is unplugged": {
			[]v1.Network{multus("red", "red-net")}, []v1.Interface{{Name: "red", InterfaceBindingMethod: bridge, State: v1.InterfaceStateAbsent}},
			map[string]string{},
		},
		"another as default": {
			[]v1.Network{main}, []v1.Interface{{Name: "default", InterfaceBindingMethod: bridge}},
			map[string]string{byDefault: "infra/main"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			vmi := &v1.VirtualMachineInstance{}
			vmi.Namespace, vmi.Name = "vms", "web"
			vmi.Spec.Networks, vmi.Spec.Domain.Devices.Interfaces = tc.networks, tc.interfaces
			made, err := podspec.Render(vmi, emulated(), image, claims)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, key := range []string{networks, byDefault, istio, reroute} {
				if value, found := made.Annotations[key]; found {
					got[key] = value
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestDevicesOfNetworksAreAskedFor(t *testing.T) {
	vmi := &v1.VirtualMachineInstance{}
	vmi.Namespace, vmi.Name = "vms", "web"
	pod, err := podspec.Render(vmi, emulated(), image, claims)
	if err != nil {
		t.Fatal(err)
	}
	podspec.TakeDevices(pod, []string{"example.com/red", "example.com/blue", "example.com/red"})
	for _, list := range []k8sv1.ResourceList{pod.Spec.Containers[0].Resources.Limits, pod.Spec.Containers[0].Resources.Requests} {
		red, blue := list["example.com/red"], list["example.com/blue"]
		if red.String() != "2" || blue.String() != "1" {
			t.Errorf("asks for %s red and %s blue, want 2 and 1", red.String(), blue.String())
		}
	}
}

// Each way of connecting an interface that isn't there is refused with its field, its reason, and what would be right.
func TestBindingsThatAreRefused(t *testing.T) {
	for field, tc := range map[string]struct {
		nic v1.Interface
		why string
	}{
		".sriov":        {v1.Interface{InterfaceBindingMethod: v1.InterfaceBindingMethod{SRIOV: &v1.InterfaceSRIOV{}}}, "a device of the node"},
		".passtBinding": {v1.Interface{InterfaceBindingMethod: v1.InterfaceBindingMethod{PasstBinding: &v1.InterfacePasstBinding{}}}, "isn't supported"},
		".passt":        {v1.Interface{InterfaceBindingMethod: v1.InterfaceBindingMethod{DeprecatedPasst: &v1.DeprecatedInterfacePasst{}}}, "removed from KubeVirt in v1.3"},
		".slirp":        {v1.Interface{InterfaceBindingMethod: v1.InterfaceBindingMethod{DeprecatedSlirp: &v1.DeprecatedInterfaceSlirp{}}}, "removed from KubeVirt in v1.3"},
		".macvtap":      {v1.Interface{InterfaceBindingMethod: v1.InterfaceBindingMethod{DeprecatedMacvtap: &v1.DeprecatedInterfaceMacvtap{}}}, "removed from KubeVirt in v1.3"},
		".binding.name": {v1.Interface{Binding: &v1.PluginBinding{Name: "tap-ng"}}, `network binding plugin "tap-ng" is not registered`},
		"":              {v1.Interface{}, "has no binding"},
	} {
		vmi := &v1.VirtualMachineInstance{}
		vmi.Namespace, vmi.Name, tc.nic.Name = "vms", "web", "red"
		vmi.Spec.Domain.Devices.Interfaces = []v1.Interface{tc.nic}
		_, err := podspec.Render(vmi, emulated(), image, claims)
		var refused *podspec.UnsupportedError
		if !errors.As(err, &refused) || refused.Field != "spec.domain.devices.interfaces[0]"+field {
			t.Errorf("%s: got %v", field, err)
			continue
		}
		for _, want := range []string{`interface "red"`, tc.why, "must be masquerade on the Pod's network, or bridge"} {
			if !strings.Contains(refused.Want, want) {
				t.Errorf("%s: got %q, want %q in it", field, refused.Want, want)
			}
		}
	}
}

// A VMI asks by an annotation for what Istio reads from a label.
func TestTheProxyIsAskedForByALabel(t *testing.T) {
	const inject = "sidecar.istio.io/inject"
	vmi := &v1.VirtualMachineInstance{}
	if got, found := podspec.Labels(vmi)[inject]; found {
		t.Errorf("unasked: got %q", got)
	}
	vmi.Annotations = map[string]string{inject: "true"}
	if got := podspec.Labels(vmi)[inject]; got != "true" {
		t.Errorf("got %q, want true", got)
	}
}
