package plan

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/defaults"
	"virtstack.io/virtstack/machine/mac"
	"virtstack.io/virtstack/machine/names"
)

// NetworkStatus is the Pod's annotation in which a meta-plugin tells of the networks it attached.
const NetworkStatus = "k8s.v1.cni.cncf.io/network-status"

// Bounds of what a Pod's annotation says, which whoever may write Pods may write.
const (
	maxNetworkStatus = 64 << 10 // bytes
	maxAddresses     = 16
	maxQueues        = 256
)

// interfaces tells of each interface of the guest, the one on the Pod's network first.
func interfaces(s Seen) []v1.VirtualMachineInstanceNetworkInterface {
	networks := map[string]v1.Network{}
	for _, n := range s.VMI.Spec.Networks {
		networks[n.Name] = n
	}
	said := map[string]*guestv1.Nic{}
	for _, n := range s.Guest.GetNics() {
		said[n.GetName()] = n
	}
	attached := attachments(s.Pod)
	var found []v1.VirtualMachineInstanceNetworkInterface
	for _, iface := range s.VMI.Spec.Domain.Devices.Interfaces {
		if iface.State == v1.InterfaceStateAbsent {
			continue
		}
		nic := names.PodInterface(networks[iface.Name])
		one := interfaceOf(s.VMI, iface, said[iface.Name])
		one.PodInterfaceName = nic
		one.IPs = podAddresses(s.Pod)
		if nic != names.PodUplink {
			one.IPs = nil
		}
		if there, ok := attached[nic]; ok && nic != names.PodUplink {
			one.IPs = valid(there)
			one.InfoSource += ", multus-status"
		}
		if len(one.IPs) > 0 {
			one.IP = one.IPs[0]
		}
		found = append(found, one)
	}
	slices.SortStableFunc(found, func(a, b v1.VirtualMachineInstanceNetworkInterface) int {
		return secondary(a) - secondary(b)
	})
	return found
}

func secondary(i v1.VirtualMachineInstanceNetworkInterface) int {
	if i.PodInterfaceName == names.PodUplink {
		return 0
	}
	return 1
}

// interfaceOf tells of one interface what the domain has; said is the launcher's word for it, nil for none.
func interfaceOf(vmi *v1.VirtualMachineInstance, iface v1.Interface, said *guestv1.Nic) v1.VirtualMachineInstanceNetworkInterface {
	asked := iface.MacAddress
	if asked == "" && iface.Masquerade != nil {
		asked = defaults.MAC(vmi.Namespace, vmi.Name, iface.Name)
	}
	if asked == "" { // the Pod's own, which the node agent told the launcher
		asked = said.GetMac()
	}
	address, err := mac.Parse(asked)
	if err != nil {
		address = ""
	}
	one := v1.VirtualMachineInstanceNetworkInterface{
		Name: iface.Name, MAC: address, InfoSource: "domain", QueueCount: int32(min(max(said.GetQueues(), 1), maxQueues)),
		LinkState: string(v1.InterfaceStateLinkUp),
	}
	if said.GetLinkDown() || said == nil && iface.State == v1.InterfaceStateLinkDown {
		one.LinkState = string(v1.InterfaceStateLinkDown)
	}
	return one
}

// podAddresses are the Pod's, which lead to the guest.
func podAddresses(pod *k8sv1.Pod) []string {
	if pod == nil {
		return nil
	}
	var all []string
	for _, ip := range pod.Status.PodIPs {
		all = append(all, ip.IP)
	}
	return valid(all)
}

// valid are those that are addresses, in their usual spelling, not too many.
func valid(ips []string) []string {
	var found []string
	for _, ip := range ips {
		if a, err := netip.ParseAddr(ip); err == nil && a.Zone() == "" && len(found) < maxAddresses {
			found = append(found, a.String())
		}
	}
	return found
}

// attachments returns the addresses of each interface that a meta-plugin says it gave the Pod.
func attachments(pod *k8sv1.Pod) map[string][]string {
	if pod == nil {
		return nil
	}
	raw := pod.Annotations[NetworkStatus]
	var list []struct {
		Interface string   `json:"interface"`
		IPs       []string `json:"ips"`
	}
	if raw == "" || len(raw) > maxNetworkStatus || json.Unmarshal([]byte(raw), &list) != nil {
		return nil
	}
	found := map[string][]string{}
	for _, one := range list {
		found[one.Interface] = one.IPs
	}
	return found
}

// hasRouter tells whether the Pod is the guest's IPv6 router: it has an address, and an interface is behind it.
func hasRouter(s Seen) bool {
	six := slices.ContainsFunc(podAddresses(s.Pod), func(ip string) bool { return strings.Contains(ip, ":") })
	return six && slices.ContainsFunc(s.VMI.Spec.Domain.Devices.Interfaces, func(i v1.Interface) bool { return i.Masquerade != nil })
}
