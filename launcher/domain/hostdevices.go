package domain

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// Assigned are the addresses of the node's devices that device plugins gave the Pod for one resource. Each is taken
// once.
type Assigned struct {
	// PCI addresses are as 0000:81:01.0, MDEV are UUIDs of mediated devices, USB are bus and device as 3:12, in decimal.
	PCI, MDEV, USB []string
}

// assignedBy are the environment variables by which device plugins tell of devices, by the start of their names.
var assignedBy = []struct {
	prefix string
	list   func(*Assigned) *[]string
}{
	{"PCI_RESOURCE_", func(a *Assigned) *[]string { return &a.PCI }},
	{"MDEV_PCI_RESOURCE_", func(a *Assigned) *[]string { return &a.MDEV }},
	{"USB_RESOURCE_", func(a *Assigned) *[]string { return &a.USB }},
}

// ParseAssigned reads what device plugins wrote into the launcher's environment, which is a list of NAME=value; by
// resource as it is spelt there. Other variables are passed over.
func ParseAssigned(environment []string) map[string]Assigned {
	out := map[string]Assigned{}
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		for _, by := range assignedBy {
			resource, ok := strings.CutPrefix(name, by.prefix)
			if !ok {
				continue
			}
			a := out[resource]
			*by.list(&a) = addresses(value)
			out[resource] = a
		}
	}
	return out
}

func addresses(list string) []string {
	var out []string
	for address := range strings.SplitSeq(list, ",") {
		if address = strings.TrimSpace(address); address != "" {
			out = append(out, address)
		}
	}
	return out
}

// variable spells a resource, such as vendor.example/gpu, as the names of environment variables end: VENDOR_EXAMPLE_GPU.
func variable(resource string) string {
	return strings.ToUpper(strings.NewReplacer("/", "_", ".", "_").Replace(resource))
}

// hostDevices are the node's devices that the guest has for itself: first its GPUs, then the others.
func (c *converter) hostDevices() []libvirtxml.DomainHostdev {
	var l []libvirtxml.DomainHostdev
	pool, devices := c.newPool(), c.spec().Devices
	add := func(kind, name, resource string, claim *v1.ClaimRequest, path *field.Path) {
		if c.refuseClaim(claim, path) {
			return
		}
		d := pool.take(resource, path.Child("deviceName"))
		d.Alias = c.prefixed(kind, name, path.Child("name"))
		l = append(l, d)
	}
	for i, g := range devices.GPUs {
		add("gpu-", g.Name, g.DeviceName, g.ClaimRequest, c.path.Child("devices", "gpus").Index(i))
	}
	c.showGPUs(l)
	for i, h := range devices.HostDevices {
		add("hostdevice-", h.Name, h.DeviceName, h.ClaimRequest, c.path.Child("devices", "hostDevices").Index(i))
	}
	return l
}

// prefixed is an alias that tells what kind of device the name is of.
func (c *converter) prefixed(kind, name string, path *field.Path) *libvirtxml.DomainAlias {
	a := c.alias(name, path)
	a.Name = userAlias + kind + name
	return a
}

func (c *converter) refuseClaim(claim *v1.ClaimRequest, path *field.Path) bool {
	if claim == nil || claim.ClaimName == nil {
		return false
	}
	c.refuse(field.Forbidden(path.Child("claimName"), "not supported yet: name a device plugin's resource in deviceName"))
	return true
}

// showGPUs gives virtual GPUs a display where the guest has a screen: those whose options say so or, where none has
// options, the first. Only one can be shown before the guest's own driver is there.
func (c *converter) showGPUs(devices []libvirtxml.DomainHostdev) {
	gpus := c.spec().Devices.GPUs
	if !on(c.spec().Devices.AutoattachGraphicsDevice) || len(devices) != len(gpus) {
		return
	}
	hasOptions := func(g v1.GPU) bool { return g.VirtualGPUOptions != nil && g.VirtualGPUOptions.Display != nil }
	some := slices.ContainsFunc(gpus, hasOptions)
	for i := range devices {
		virtual := devices[i].SubsysMDev
		switch {
		case virtual == nil:
		case !some:
			virtual.Display, virtual.RamFB = "on", "on"
			return
		case hasOptions(gpus[i]):
			options := gpus[i].VirtualGPUOptions.Display
			virtual.Display = onOff(options.Enabled)
			if on(options.Enabled) && (options.RamFB == nil || on(options.RamFB.Enabled)) {
				virtual.RamFB = "on"
			}
		}
	}
}

// pool hands out what the Pod was given.
type pool struct {
	c    *converter
	left map[string]Assigned
}

func (c *converter) newPool() *pool {
	p := &pool{c, map[string]Assigned{}}
	for resource, a := range c.facts.Assigned {
		p.left[resource] = a
	}
	return p
}

// take returns the next device of a resource.
func (p *pool) take(resource string, path *field.Path) libvirtxml.DomainHostdev {
	key := variable(resource)
	a := p.left[key]
	defer func() { p.left[key] = a }()
	switch {
	case len(a.PCI) > 0:
		address := a.PCI[0]
		a.PCI = a.PCI[1:]
		return p.c.pci(address, path)
	case len(a.MDEV) > 0:
		id := a.MDEV[0]
		a.MDEV = a.MDEV[1:]
		return p.c.mdev(id, path)
	case len(a.USB) > 0:
		address := a.USB[0]
		a.USB = a.USB[1:]
		return p.c.usb(address, path)
	}
	p.c.refuse(field.Invalid(path, resource, "must be a resource whose device plugin gives the Pod a device for each time it is named: "+
		"PCI_RESOURCE_"+key+", MDEV_PCI_RESOURCE_"+key+" and USB_RESOURCE_"+key+" name no more"))
	return libvirtxml.DomainHostdev{}
}

func (c *converter) pci(address string, path *field.Path) libvirtxml.DomainHostdev {
	d := libvirtxml.DomainHostdev{Managed: "no", SubsysPCI: &libvirtxml.DomainHostdevSubsysPCI{}}
	if a := c.pciAddress(address, path); a != nil {
		d.SubsysPCI.Source = &libvirtxml.DomainHostdevSubsysPCISource{Address: a.PCI}
	}
	return d
}

var uuidShape = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func (c *converter) mdev(id string, path *field.Path) libvirtxml.DomainHostdev {
	if !uuidShape.MatchString(id) {
		c.refuse(field.Invalid(path, id, "the device plugin must name a mediated device by its UUID"))
	}
	source := &libvirtxml.DomainHostdevSubsysMDevSource{Address: &libvirtxml.DomainAddressMDev{UUID: id}}
	return libvirtxml.DomainHostdev{Managed: "no", SubsysMDev: &libvirtxml.DomainHostdevSubsysMDev{Model: "vfio-pci", Source: source}}
}

func (c *converter) usb(address string, path *field.Path) libvirtxml.DomainHostdev {
	bus, device, _ := strings.Cut(address, ":")
	b, err1 := strconv.ParseUint(bus, 10, 16)
	n, err2 := strconv.ParseUint(device, 10, 16)
	if err1 != nil || err2 != nil {
		c.refuse(field.Invalid(path, address, "the device plugin must name a USB device by bus and device, such as 3:12"))
	}
	source := &libvirtxml.DomainHostdevSubsysUSBSource{Address: &libvirtxml.DomainAddressUSB{Bus: ptr(uint(b)), Device: ptr(uint(n))}}
	return libvirtxml.DomainHostdev{Managed: "no", SubsysUSB: &libvirtxml.DomainHostdevSubsysUSB{Source: source}}
}
