package validate

import (
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
)

const (
	// gatewayMAC is the address of the Pod's end of a masqueraded interface.
	gatewayMAC = "02:00:00:00:00:00"
	rightMAC   = "must be six bytes in hexadecimal, such as 02:00:5e:00:53:0a"
)

var (
	models     = []string{v1.VirtIO, "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139"}
	linkStates = []v1.InterfaceState{v1.InterfaceStateAbsent, v1.InterfaceStateLinkUp, v1.InterfaceStateLinkDown}
	protocols  = []string{"TCP", "UDP"}
)

// interfaces checks interfaces, and that each has a network of its name.
func interfaces(path *field.Path, spec *v1.VirtualMachineInstanceSpec) field.ErrorList {
	list := spec.Domain.Devices.Interfaces
	attached := map[string]*v1.Network{}
	for i := range spec.Networks {
		attached[spec.Networks[i].Name] = &spec.Networks[i]
	}
	errs := unique(len(list), func(i int) (string, *field.Path) {
		return list[i].Name, path.Index(i).Child("name")
	})
	for i := range list {
		at := path.Index(i)
		wrong := linkName(at.Child("name"), list[i].Name)
		if len(wrong) == 0 && attached[list[i].Name] == nil {
			wrong = append(wrong, field.Invalid(at.Child("name"), list[i].Name,
				"must be the name of one of the machine's networks: add the network or remove this"))
		}
		errs = append(errs, wrong...)
		errs = append(errs, nic(at, &list[i], attached[list[i].Name])...)
	}
	return append(errs, distinctMACs(path, list)...)
}

func nic(path *field.Path, n *v1.Interface, network *v1.Network) field.ErrorList {
	errs := binding(path, n, network)
	errs = append(errs, oneOf(path.Child("model"), n.Model, models)...)
	errs = append(errs, oneOf(path.Child("state"), n.State, linkStates)...)
	if n.MacAddress != "" {
		errs = append(errs, macAddress(path.Child("macAddress"), n)...)
	}
	if n.PciAddress != "" {
		errs = append(errs, pciAddress(path.Child("pciAddress"), n.PciAddress)...)
	}
	return append(errs, ports(path.Child("ports"), n.Ports)...)
}

// binding wants exactly one way to connect an interface.
func binding(path *field.Path, n *v1.Interface, network *v1.Network) field.ErrorList {
	found := set(n.InterfaceBindingMethod)
	if n.Binding != nil {
		found = append(found, "binding")
	}
	switch {
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

func ports(path *field.Path, list []v1.Port) field.ErrorList {
	var errs field.ErrorList
	first := map[string]*field.Path{}
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
	mac, first, ok := parseMAC(n.MacAddress)
	switch {
	case !ok:
		return field.ErrorList{field.Invalid(path, short(n.MacAddress), rightMAC)}
	case first&1 != 0:
		return field.ErrorList{field.Invalid(path, n.MacAddress, "is a group address; "+rightMAC)}
	case mac == "00:00:00:00:00:00":
		return field.ErrorList{field.Invalid(path, n.MacAddress, "is no address; "+rightMAC)}
	case mac == gatewayMAC && n.Masquerade != nil:
		return field.ErrorList{field.Invalid(path, n.MacAddress, "is the gateway's own; "+rightMAC)}
	}
	return nil
}

func distinctMACs(path *field.Path, list []v1.Interface) field.ErrorList {
	var errs field.ErrorList
	first := map[string]string{}
	for i := range list {
		mac, _, ok := parseMAC(list[i].MacAddress)
		if !ok {
			continue
		}
		if other, seen := first[mac]; seen {
			err := field.Duplicate(path.Index(i).Child("macAddress"), list[i].MacAddress)
			err.Detail = fmt.Sprintf("interface %q must not have the address of interface %q", short(list[i].Name), short(other))
			errs = append(errs, err)
			continue
		}
		first[mac] = list[i].Name
	}
	return errs
}

// parseMAC reads six bytes with ':' or '-' between them. It returns them in lower case with ':', and the
// first byte.
func parseMAC(s string) (mac string, first byte, ok bool) {
	if len(s) != 17 || strings.Count(s, ":") != 5 && strings.Count(s, "-") != 5 {
		return "", 0, false
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == ':' || r == '-' })
	bytes, err := hex.DecodeString(strings.Join(parts, ""))
	if err != nil || len(parts) != 6 || len(bytes) != 6 {
		return "", 0, false
	}
	for _, part := range parts {
		if len(part) != 2 {
			return "", 0, false
		}
	}
	return strings.ToLower(strings.Join(parts, ":")), bytes[0], true
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
