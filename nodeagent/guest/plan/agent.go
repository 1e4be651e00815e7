package plan

import (
	"net/netip"
	"slices"
	"strings"

	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/mac"
)

// Bounds of what is taken from a guest's agent; the launcher, which stands next to the guest, is not believed to have
// kept its own.
const (
	maxAgentText  = 128 // bytes
	maxAgentNICs  = 64
	maxGuestOnly  = 10 // interfaces that only the guest knows of; source: contract of KubeVirt
	agentSource   = "guest-agent"
	sourceDivider = ", "
)

// system tells what runs in the guest.
func system(a *guestv1.Agent) v1.VirtualMachineInstanceGuestOSInfo {
	said := func(s string) string { return text(s[:min(len(s), maxAgentText)]) }
	return v1.VirtualMachineInstanceGuestOSInfo{
		ID: said(a.GetOsId()), Name: said(a.GetOsName()), PrettyName: said(a.GetOsPrettyName()), Machine: said(a.GetOsMachine()),
		Version: said(a.GetOsVersion()), VersionID: said(a.GetOsVersionId()),
		KernelRelease: said(a.GetKernelRelease()), KernelVersion: said(a.GetKernelVersion()),
	}
}

// withAgent adds what the guest's agent says to the interfaces that the guest was given, and the guest's own ones.
func withAgent(s Seen, given []v1.VirtualMachineInstanceNetworkInterface) []v1.VirtualMachineInstanceNetworkInterface {
	list := s.Guest.GetAgent().GetInterfaces()
	guestOnly := 0
	for _, said := range list[:min(len(list), maxAgentNICs)] {
		address, err := mac.Parse(said.GetMac())
		if err != nil || said.GetName() == "lo" {
			continue
		}
		at := slices.IndexFunc(given, func(i v1.VirtualMachineInstanceNetworkInterface) bool { return i.MAC == address && i.Name != "" })
		if at >= 0 {
			given[at] = merged(given[at], said, behindMasquerade(s.VMI, given[at].Name))
			continue
		}
		if guestOnly++; guestOnly > maxGuestOnly {
			continue
		}
		own := v1.VirtualMachineInstanceNetworkInterface{MAC: address, InfoSource: agentSource, InterfaceName: guestName(said), IPs: valid(said.GetAddresses())}
		given = append(given, withFirst(own))
	}
	return given
}

func guestName(said *guestv1.AgentInterface) string {
	return text(said.GetName()[:min(len(said.GetName()), maxAgentText)])
}

// merged takes the addresses of each family from the Pod where both it and the guest have one, else from the guest.
func merged(i v1.VirtualMachineInstanceNetworkInterface, said *guestv1.AgentInterface, masquerade bool) v1.VirtualMachineInstanceNetworkInterface {
	var ips []string
	for _, four := range []bool{true, false} {
		pods, guests := family(i.IPs, four, false), family(valid(said.GetAddresses()), four, masquerade)
		if len(pods) > 0 && len(guests) > 0 {
			guests = pods
		}
		ips = append(ips, guests...)
	}
	i.IPs, i.InterfaceName = ips, guestName(said)
	first, rest, _ := strings.Cut(i.InfoSource, sourceDivider)
	i.InfoSource = strings.TrimSuffix(first+sourceDivider+agentSource+sourceDivider+rest, sourceDivider)
	return withFirst(i)
}

func withFirst(i v1.VirtualMachineInstanceNetworkInterface) v1.VirtualMachineInstanceNetworkInterface {
	i.IP = ""
	if len(i.IPs) > 0 {
		i.IP = i.IPs[0]
	}
	return i
}

// family returns the IPv4 or the IPv6 addresses; link-local ones mean nothing behind masquerade.
func family(ips []string, four, noLinkLocal bool) []string {
	var found []string
	for _, ip := range ips {
		a, err := netip.ParseAddr(ip)
		if err == nil && a.Is4() == four && !(noLinkLocal && a.IsLinkLocalUnicast()) {
			found = append(found, ip)
		}
	}
	return found
}

func behindMasquerade(vmi *v1.VirtualMachineInstance, name string) bool {
	return slices.ContainsFunc(vmi.Spec.Domain.Devices.Interfaces, func(i v1.Interface) bool { return i.Name == name && i.Masquerade != nil })
}
