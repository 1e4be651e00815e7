package domain

import (
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

var (
	bindings = []string{"bridge", "masquerade"}
	models   = []string{v1.VirtIO, "e1000", "e1000e", "igb", "ne2k_pci", "pcnet", "rtl8139"}
)

func (c *converter) interfaces() []libvirtxml.DomainInterface {
	var l []libvirtxml.DomainInterface
	for i := range c.spec().Devices.Interfaces {
		nic := &c.spec().Devices.Interfaces[i]
		if nic.State == v1.InterfaceStateAbsent {
			continue
		}
		path := c.path.Child("devices", "interfaces").Index(i)
		if c.refuseBinding(nic, path) {
			continue
		}
		l = append(l, c.nic(nic, path))
	}
	return l
}

func (c *converter) refuseBinding(nic *v1.Interface, path *field.Path) bool {
	b := nic.InterfaceBindingMethod
	for _, other := range []struct {
		name  string
		found bool
	}{
		{"sriov", b.SRIOV != nil}, {"slirp", b.DeprecatedSlirp != nil}, {"macvtap", b.DeprecatedMacvtap != nil},
		{"passt", b.DeprecatedPasst != nil}, {"passtBinding", b.PasstBinding != nil}, {"binding", nic.Binding != nil},
	} {
		if other.found {
			c.refuse(field.NotSupported(path, other.name, bindings))
			return true
		}
	}
	return false
}

func (c *converter) nic(nic *v1.Interface, path *field.Path) libvirtxml.DomainInterface {
	fact, found := c.facts.Interfaces[nic.Name]
	if !found {
		c.refuse(field.Invalid(path.Child("name"), nic.Name, "was not prepared by the node agent"))
	}
	mac := fact.MAC
	if mac == "" {
		mac = nic.MacAddress
	}
	d := libvirtxml.DomainInterface{
		MAC:    &libvirtxml.DomainInterfaceMAC{Address: c.mac(mac, path.Child("macAddress"))},
		Source: &libvirtxml.DomainInterfaceSource{Ethernet: &libvirtxml.DomainInterfaceSourceEthernet{}},
		Target: &libvirtxml.DomainInterfaceTarget{Dev: fact.Tap, Managed: "no"},
		Model:  &libvirtxml.DomainInterfaceModel{Type: c.model(nic, path)},
		Boot:   bootOrder(nic.BootOrder),
		Alias:  c.alias(nic.Name, path.Child("name")),
	}
	if fact.MTU > 0 {
		d.MTU = &libvirtxml.DomainInterfaceMTU{Size: fact.MTU}
	}
	if nic.BootOrder == nil {
		d.ROM = &libvirtxml.DomainROM{Enabled: "no"} // nothing boots from it: firmware need not load its boot ROM
	}
	if nic.State == v1.InterfaceStateLinkDown {
		d.Link = &libvirtxml.DomainInterfaceLink{State: "down"}
	}
	if nic.ACPIIndex > 0 {
		d.ACPI = &libvirtxml.DomainDeviceACPI{Index: uint(nic.ACPIIndex)}
	}
	if nic.PciAddress != "" {
		c.refuse(field.Forbidden(path.Child("pciAddress"), "not supported yet: leave it out"))
	}
	return d
}

func (c *converter) model(nic *v1.Interface, path *field.Path) string {
	switch {
	case nic.Model == "" || nic.Model == v1.VirtIO:
		return c.virtio()
	case !slices.Contains(models, nic.Model):
		c.refuse(field.NotSupported(path.Child("model"), nic.Model, models))
	}
	return nic.Model
}

// mac returns a MAC address in libvirt's spelling: lower case with colons.
func (c *converter) mac(text string, path *field.Path) string {
	b, err := hex.DecodeString(strings.NewReplacer(":", "", "-", "", ".", "").Replace(text))
	switch {
	case err != nil || len(b) != 6:
		c.refuse(field.Invalid(path, text, "must be six bytes such as 02:00:5e:00:53:0a"))
		return ""
	case b[0]&1 != 0:
		c.refuse(field.Invalid(path, text, "must not be a group address: make the first byte even, such as 02:00:5e:00:53:0a"))
	case slices.Equal(b, make([]byte, 6)):
		c.refuse(field.Invalid(path, text, "must not be zero: leave it out, or give one such as 02:00:5e:00:53:0a"))
	}
	pairs := make([]string, len(b))
	for i := range b {
		pairs[i] = hex.EncodeToString(b[i : i+1])
	}
	return strings.Join(pairs, ":")
}
