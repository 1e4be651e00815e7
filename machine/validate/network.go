package validate

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/mac"
)

const (
	// gatewayMAC is the address of the Pod's end of a masqueraded interface.
	gatewayMAC = "02:00:00:00:00:00"
)

var (
	models     = []string{v1.VirtIO, "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139"}
	linkStates = []v1.InterfaceState{v1.InterfaceStateAbsent, v1.InterfaceStateLinkUp, v1.InterfaceStateLinkDown}
	protocols  = []string{"TCP", "UDP"}
)

// interfaces checks interfaces, and that each has a network of its name.
func interfaces(path *field.Path, spec *v1.VirtualMachineInstanceSpec, from supplies) field.ErrorList {
	list := spec.Domain.Devices.Interfaces
	attached := map[string]*v1.Network{}
	for i := range spec.Networks {
		attached[spec.Networks[i].Name] = &spec.Networks[i]
	}
	errs := unique(len(list), func(i int) (string, *field.Path) {
		return list[i].Name, path.Index(i).Child("name")
	})
	named := map[string]*field.Path{} // ports of all interfaces are those of one container
	for i := range list {
		at := path.Index(i)
		wrong := linkName(at.Child("name"), list[i].Name)
		if len(wrong) == 0 && attached[list[i].Name] == nil {
			wrong = append(wrong, field.Invalid(at.Child("name"), list[i].Name,
				"must be the name of one of the machine's networks: add the network or remove this"))
		}
		errs = append(errs, wrong...)
		errs = append(errs, binding(at, &list[i], attached[list[i].Name], from)...)
		errs = append(errs, nic(at, &list[i], attached[list[i].Name])...)
		errs = append(errs, ports(at.Child("ports"), list[i].Ports, named)...)
	}
	return append(errs, distinctMACs(path, list)...)
}

func nic(path *field.Path, n *v1.Interface, network *v1.Network) field.ErrorList {
	errs := oneOf(path.Child("model"), n.Model, models)
	errs = append(errs, oneOf(path.Child("state"), n.State, linkStates)...)
	if n.MacAddress != "" {
		errs = append(errs, macAddress(path.Child("macAddress"), n)...)
	}
	if n.PciAddress != "" {
		errs = append(errs, pciAddress(path.Child("pciAddress"), n.PciAddress)...)
	}
	errs = append(errs, link(path.Child("state"), n, network)...)
	return append(errs, dhcp(path.Child("dhcpOptions"), n.DHCPOptions)...)
}

// binding wants exactly one way to connect an interface; a preference may say which.
func binding(path *field.Path, n *v1.Interface, network *v1.Network, from supplies) field.ErrorList {
	found := set(n.InterfaceBindingMethod)
	if n.Binding != nil {
		found = append(found, "binding")
	}
	switch {
	case len(found) == 0 && from.preference:
		return nil
	case len(found) == 0:
		return field.ErrorList{field.Required(path, "must have one of masquerade, bridge, sriov, passtBinding, binding: "+
			"masquerade: {} is right for the Pod network")}
	case len(found) > 1:
		return tooMany(path, found)
	}
	switch found[0] {
	case "slirp", "macvtap", "passt":
		return field.ErrorList{field.Invalid(path.Child(found[0]), found[0],
			"is discontinued: must be masquerade, bridge, sriov, passtBinding or binding")}
	case "masquerade", "passtBinding":
		if network != nil && network.Pod == nil {
			return field.ErrorList{field.Invalid(path.Child(found[0]), short(n.Name),
				"must be of a network with pod: {}: use bridge for others")}
		}
	}
	return nil
}

// ports checks an interface's ports; first has the names of those before it, and gets those of this one.
func ports(path *field.Path, list []v1.Port, first map[string]*field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, p := range list {
		at := path.Index(i)
		switch {
		case p.Port == 0:
			errs = append(errs, field.Required(at.Child("port"), "must be a port from 1 to 65535"))
		case p.Port < 0 || p.Port > 65535:
			errs = append(errs, field.Invalid(at.Child("port"), p.Port, "must be a port from 1 to 65535"))
		}
		errs = append(errs, oneOf(at.Child("protocol"), p.Protocol, protocols)...)
		if p.Name == "" {
			continue
		}
		if wrong := validation.IsValidPortName(p.Name); len(wrong) > 0 {
			errs = append(errs, field.Invalid(at.Child("name"), short(p.Name), strings.Join(wrong, ", ")))
		}
		if other, seen := first[p.Name]; seen {
			err := field.Duplicate(at.Child("name"), short(p.Name))
			err.Detail = fmt.Sprintf("must be unique: %s has it too", other)
			errs = append(errs, err)
		}
		first[p.Name] = at
	}
	return errs
}

// link checks a state that not every interface can have.
func link(path *field.Path, n *v1.Interface, network *v1.Network) field.ErrorList {
	first := network != nil && (network.Pod != nil || network.Multus != nil && network.Multus.Default)
	switch {
	case n.State == v1.InterfaceStateAbsent && (n.Bridge == nil || first):
		return field.ErrorList{field.Invalid(path, n.State,
			"takes away only an interface with bridge: {} that isn't of the Pod's or the default network")}
	case n.SRIOV != nil && (n.State == v1.InterfaceStateLinkUp || n.State == v1.InterfaceStateLinkDown):
		return field.ErrorList{field.Invalid(path, n.State, "must be left out of an interface with sriov: its link can't be set")}
	}
	return nil
}

func dhcp(path *field.Path, o *v1.DHCPOptions) field.ErrorList {
	if o == nil {
		return nil
	}
	var errs field.ErrorList
	first := map[int]int{}
	for i, option := range o.PrivateOptions {
		at := path.Child("privateOptions").Index(i).Child("option")
		if option.Option < 224 || option.Option > 254 {
			errs = append(errs, field.Invalid(at, option.Option, "must be a private option, from 224 to 254"))
		}
		if other, seen := first[option.Option]; seen {
			err := field.Duplicate(at, option.Option)
			err.Detail = fmt.Sprintf("must be unique: privateOptions[%d] is it too", other)
			errs = append(errs, err)
		}
		first[option.Option] = i
	}
	for i, server := range o.NTPServers {
		if a, err := netip.ParseAddr(server); err != nil || !a.Is4() {
			errs = append(errs, field.Invalid(path.Child("ntpServers").Index(i), short(server), "must be an IPv4 address, such as 192.0.2.123"))
		}
	}
	return errs
}

// networks checks networks, and that each has an interface of its name.
func networks(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	used := map[string]bool{}
	for _, n := range spec.Domain.Devices.Interfaces {
		used[n.Name] = true
	}
	errs := unique(len(spec.Networks), func(i int) (string, *field.Path) {
		return spec.Networks[i].Name, path.Index(i).Child("name")
	})
	var primary *field.Path
	for i := range spec.Networks {
		n, at := &spec.Networks[i], path.Index(i)
		wrong := linkName(at.Child("name"), n.Name)
		if len(wrong) == 0 && !used[n.Name] {
			wrong = append(wrong, field.Required(at.Child("name"),
				fmt.Sprintf("network %q must have an interface of its name: add the interface or remove this", n.Name)))
		}
		errs = append(errs, wrong...)
		errs = append(errs, exactlyOne(at, n.NetworkSource)...)
		errs = append(errs, subnets(at.Child("pod"), n.Pod)...)
		if n.Multus != nil && n.Multus.NetworkName == "" {
			errs = append(errs, field.Required(at.Child("multus", "networkName"),
				"must be the name of a NetworkAttachmentDefinition, with its namespace before a '/' if that is another one"))
		}
		if n.Pod == nil && (n.Multus == nil || !n.Multus.Default) {
			continue
		}
		if primary != nil {
			err := field.Duplicate(at, short(n.Name))
			err.Detail = fmt.Sprintf("must be the only network that is pod or a default multus: %s is one too", primary)
			errs = append(errs, err)
		}
		primary = at
	}
	return errs
}

func macAddress(path *field.Path, n *v1.Interface) field.ErrorList {
	address, err := mac.Parse(n.MacAddress)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, short(n.MacAddress), err.Error())}
	case address == gatewayMAC && n.Masquerade != nil:
		return field.ErrorList{field.Invalid(path, n.MacAddress, "is the gateway's own; "+mac.ErrFormat.Error())}
	}
	return nil
}

func distinctMACs(path *field.Path, list []v1.Interface) field.ErrorList {
	var errs field.ErrorList
	first := map[string]string{}
	for i := range list {
		address, err := mac.Parse(list[i].MacAddress)
		if err != nil {
			continue
		}
		if other, seen := first[address]; seen {
			err := field.Duplicate(path.Index(i).Child("macAddress"), list[i].MacAddress)
			err.Detail = fmt.Sprintf("interface %q must not have the address of interface %q", short(list[i].Name), short(other))
			errs = append(errs, err)
			continue
		}
		first[address] = list[i].Name
	}
	return errs
}

// pciAddress wants domain:bus:slot.function in hexadecimal.
func pciAddress(path *field.Path, s string) field.ErrorList {
	digits := strings.NewReplacer(":", "", ".", "").Replace(s)
	_, err := hex.DecodeString("0" + digits) // nine digits
	shape := len(s) == 12 && s[4] == ':' && s[7] == ':' && s[10] == '.' && len(digits) == 9
	if err == nil && shape && s[11] <= '7' {
		return nil
	}
	return field.ErrorList{field.Invalid(path, short(s), "must be a PCI address in hexadecimal, such as 0000:81:01.0")}
}
