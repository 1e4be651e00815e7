package domain

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"

	"virtstack.io/virtstack/machine/mac"
)

var pciShape = regexp.MustCompile(`^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]$`)

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
		MAC:     &libvirtxml.DomainInterfaceMAC{Address: c.mac(mac, path.Child("macAddress"))},
		Source:  &libvirtxml.DomainInterfaceSource{Ethernet: &libvirtxml.DomainInterfaceSourceEthernet{}},
		Target:  &libvirtxml.DomainInterfaceTarget{Dev: fact.Tap, Managed: "no"},
		Model:   &libvirtxml.DomainInterfaceModel{Type: c.model(nic, path)},
		Boot:    bootOrder(nic.BootOrder),
		Alias:   c.alias(nic.Name, path.Child("name")),
		Address: c.pciAddress(nic.PciAddress, path.Child("pciAddress")),
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
	if fact.Queues > 1 {
		// No name: libvirt takes vhost-net where it is.
		d.Driver = &libvirtxml.DomainInterfaceDriver{Queues: fact.Queues}
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
	address, err := mac.Parse(text)
	if err != nil {
		c.refuse(field.Invalid(path, text, err.Error()))
	}
	return address
}

// pciAddress is where the guest finds the device; a spec says it as domain:bus:slot.function in hexadecimal.
func (c *converter) pciAddress(text string, path *field.Path) *libvirtxml.DomainAddress {
	if text == "" {
		return nil
	}
	b, err := hex.DecodeString("0" + strings.NewReplacer(":", "", ".", "").Replace(text)) // nine digits
	if err != nil || !pciShape.MatchString(text) {
		c.refuse(field.Invalid(path, text, "must be a PCI address in hexadecimal, such as 0000:81:01.0"))
		return nil
	}
	digits := uint64(0)
	for _, one := range b {
		digits = digits<<8 | uint64(one)
	}
	part := func(shift, bits uint64) *uint { return ptr(uint(digits >> shift & (1<<bits - 1))) }
	return &libvirtxml.DomainAddress{PCI: &libvirtxml.DomainAddressPCI{
		Domain: part(20, 16), Bus: part(12, 8), Slot: part(4, 8), Function: part(0, 4),
	}}
}

// NIC is a network interface of a domain.
type NIC struct {
	// Name is the interface's in the spec.
	Name string
	// MAC is in lower case with colons.
	MAC string
	// Queues is 1 for an interface without several.
	Queues uint
	// Down is set where the guest sees no cable.
	Down bool
}

// NICs returns the network interfaces of a domain that Convert made, in its order.
func NICs(d *libvirtxml.Domain) []NIC {
	var out []NIC
	for _, i := range d.Devices.Interfaces {
		nic := NIC{Name: i.Alias.Name[len(userAlias):], MAC: i.MAC.Address, Queues: 1, Down: i.Link != nil && i.Link.State == "down"}
		if i.Driver != nil && i.Driver.Queues > 1 {
			nic.Queues = i.Driver.Queues
		}
		out = append(out, nic)
	}
	return out
}
