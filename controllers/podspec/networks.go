package podspec

import (
	"encoding/json"
	"fmt"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/mac"
	"virtstack.io/virtstack/machine/names"
)

// Annotations of a Pod that Multus, or what takes its place, and Istio read. Source: their documentation, and the
// contract of KubeVirt for what is in them.
const (
	networksAnnotation       = "k8s.v1.cni.cncf.io/networks"
	defaultNetworkAnnotation = "v1.multus-cni.io/default-network"
)

var istioAnnotations = []string{"traffic.sidecar.istio.io/kubevirtInterfaces", "istio.io/reroute-virtual-interfaces"}

// attachment asks for one more network of the Pod.
type attachment struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Interface string `json:"interface"`
	MAC       string `json:"mac,omitempty"`
}

// annotateNetworks adds what the VMI's networks need of the Pod's.
func annotateNetworks(annotations map[string]string, vmi *v1.VirtualMachineInstance) {
	interfaces := map[string]v1.Interface{}
	for _, i := range vmi.Spec.Domain.Devices.Interfaces {
		interfaces[i.Name] = i
		if i.Masquerade == nil {
			continue
		}
		for _, key := range istioAnnotations {
			annotations[key] = names.WiringOf(names.PodUplink).Bridge
		}
	}
	var wanted []attachment
	for _, n := range vmi.Spec.Networks {
		i, found := interfaces[n.Name]
		switch {
		case n.Multus == nil || found && i.State == v1.InterfaceStateAbsent:
		case n.Multus.Default:
			annotations[defaultNetworkAnnotation] = n.Multus.NetworkName
		default:
			wanted = append(wanted, attachmentOf(vmi.Namespace, n, i))
		}
	}
	if len(wanted) == 0 {
		return
	}
	raw, _ := json.Marshal(wanted) // strings alone: no error
	annotations[networksAnnotation] = string(raw)
}

func attachmentOf(namespace string, n v1.Network, i v1.Interface) attachment {
	a := attachment{Name: n.Multus.NetworkName, Namespace: namespace, Interface: names.PodInterface(n)}
	if other, name, found := strings.Cut(n.Multus.NetworkName, "/"); found {
		a.Namespace, a.Name = other, name
	}
	if address, err := mac.Parse(i.MacAddress); err == nil {
		a.MAC = address
	}
	return a
}

// Attachments returns the definitions of all networks, the default one included, that a VMI's Pod is attached to by
// name, in the VMI's order; one that is named twice is there twice.
func Attachments(vmi *v1.VirtualMachineInstance) []types.NamespacedName {
	absent := map[string]bool{}
	for _, i := range vmi.Spec.Domain.Devices.Interfaces {
		absent[i.Name] = i.State == v1.InterfaceStateAbsent
	}
	var all []types.NamespacedName
	for _, n := range vmi.Spec.Networks {
		if n.Multus != nil && !absent[n.Name] {
			a := attachmentOf(vmi.Namespace, n, v1.Interface{})
			all = append(all, types.NamespacedName{Namespace: a.Namespace, Name: a.Name})
		}
	}
	return all
}

// TakeDevices has the launcher ask for one device of each of these resources, which networks take.
func TakeDevices(pod *k8sv1.Pod, resources []string) {
	r := &pod.Spec.Containers[0].Resources
	for _, name := range resources {
		for _, list := range []k8sv1.ResourceList{r.Limits, r.Requests} {
			q := list[k8sv1.ResourceName(name)]
			q.Add(*resource.NewQuantity(1, resource.DecimalSI))
			list[k8sv1.ResourceName(name)] = q
		}
	}
}

func supportedNetworks(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for i, n := range vmi.Spec.Networks {
		field := fmt.Sprintf("spec.networks[%d]", i)
		switch {
		case n.Pod == nil && n.Multus == nil:
			return &UnsupportedError{field, fmt.Sprintf("network %q: only the Pod's network (pod) and multus are supported yet", n.Name)}
		case n.Multus != nil && n.Multus.NetworkName == "":
			return &UnsupportedError{field + ".multus.networkName", "must be the name of a NetworkAttachmentDefinition"}
		}
	}
	return nil
}

// connected tells to do what another way of connecting an interface is refused for.
const connected = "must be masquerade on the Pod's network, or bridge"

func supportedInterfaces(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for i, n := range vmi.Spec.Domain.Devices.Interfaces {
		field := fmt.Sprintf("spec.domain.devices.interfaces[%d]", i)
		if err := supportedBinding(field, &n); err != nil {
			return err
		}
	}
	return nil
}

// supportedBinding refuses ways of connecting that no launcher has, each with its reason.
func supportedBinding(field string, n *v1.Interface) *UnsupportedError {
	const removed = "was removed from KubeVirt in v1.3: "
	for _, other := range []struct {
		asked     bool
		name, why string
	}{
		{n.SRIOV != nil, "sriov", "handing a device of the node to the guest isn't supported yet: "},
		{n.PasstBinding != nil, "passtBinding", "needs a process in each launcher that masquerade does without, and isn't supported: "},
		{n.DeprecatedPasst != nil, "passt", removed},
		{n.DeprecatedSlirp != nil, "slirp", removed},
		{n.DeprecatedMacvtap != nil, "macvtap", removed},
	} {
		if other.asked {
			return &UnsupportedError{field + "." + other.name, fmt.Sprintf("interface %q: %s%s", n.Name, other.why, connected)}
		}
	}
	switch {
	case n.Binding != nil:
		return &UnsupportedError{field + ".binding.name", fmt.Sprintf("interface %q: network binding plugin %q is not registered, "+
			"and none can be: a plugin is a program of its own beside each launcher, which isn't supported: %s", n.Name, n.Binding.Name, connected)}
	case n.Masquerade == nil && n.Bridge == nil:
		return &UnsupportedError{field, fmt.Sprintf("interface %q has no binding: %s", n.Name, connected)}
	}
	return nil
}
