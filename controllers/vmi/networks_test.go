package vmi

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestNetworksTakeTheirDevices(t *testing.T) {
	definition := func(namespace, name, resource string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(definitions)
		u.SetNamespace(namespace)
		u.SetName(name)
		if resource != "" {
			u.SetAnnotations(map[string]string{networkResource: resource})
		}
		return u
	}
	multus := func(name, of string) v1.Network {
		return v1.Network{Name: name, NetworkSource: v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: of}}}
	}
	live := fake.NewClientBuilder().WithObjects(
		definition("vms", "plain", ""), definition("vms", "red", "example.com/red"), definition("infra", "blue", "example.com/blue"),
	).Build()
	vmi := &v1.VirtualMachineInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "web"}}
	vmi.Spec.Networks = []v1.Network{
		*v1.DefaultPodNetwork(), multus("a", "red"), multus("b", "infra/blue"), multus("c", "plain"), multus("d", "missing"), multus("e", "red"), multus("f", "red"),
	}
	for _, n := range vmi.Spec.Networks {
		vmi.Spec.Domain.Devices.Interfaces = append(vmi.Spec.Domain.Devices.Interfaces, v1.Interface{Name: n.Name})
	}
	vmi.Spec.Domain.Devices.Interfaces[6].State = v1.InterfaceStateAbsent
	got, err := networkResources(t.Context(), live, vmi)
	if want := []string{"example.com/blue", "example.com/red", "example.com/red"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
