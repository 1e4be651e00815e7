package domain

import (
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// userAlias starts the alias of every device that the spec names, as libvirt demands it of aliases not its own.
const userAlias = "ua-"

// aliasable are the names that fit an alias.
var aliasable = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// targetPrefix is how the guest's device names start, by bus.
var targetPrefix = map[v1.DiskBus]string{
	v1.DiskBusVirtio: "vd", v1.DiskBusSATA: "sd", v1.DiskBusSCSI: "sd", v1.DiskBusUSB: "sd",
}

// DiskTargets returns the device name in the guest (such as vda) of each disk of a domain that Convert made, by the
// disk's name in the spec.
func DiskTargets(d *libvirtxml.Domain) map[string]string {
	targets := map[string]string{}
	for _, disk := range d.Devices.Disks {
		targets[disk.Alias.Name[len(userAlias):]] = disk.Target.Dev
	}
	return targets
}

func (c *converter) disks() []libvirtxml.DomainDisk {
	var l []libvirtxml.DomainDisk
	targets := c.targets()
	for i := range c.spec().Devices.Disks {
		disk := &c.spec().Devices.Disks[i]
		path := c.path.Child("devices", "disks").Index(i)
		if d, ok := c.disk(disk, path); ok {
			d.Target.Dev = targets.next(disk.Name, targetPrefix[v1.DiskBus(d.Target.Bus)])
			l = append(l, d)
		}
	}
	return l
}

func (c *converter) disk(disk *v1.Disk, path *field.Path) (libvirtxml.DomainDisk, bool) {
	d := libvirtxml.DomainDisk{
		Device: "disk",
		Driver: &libvirtxml.DomainDiskDriver{Name: "qemu", Type: string(Raw)},
		Target: &libvirtxml.DomainDiskTarget{},
		Serial: disk.Serial,
		Alias:  c.alias(disk.Name, path.Child("name")),
		Boot:   bootOrder(disk.BootOrder),
	}
	before := len(c.errs)
	c.attach(&d, disk, path)
	c.drive(&d, disk, path)
	return d, len(c.errs) == before
}

// attach settles what kind of device the guest sees and on which bus.
func (c *converter) attach(d *libvirtxml.DomainDisk, disk *v1.Disk, path *field.Path) {
	bus, readOnly := v1.DiskBus(""), false
	switch {
	case disk.LUN != nil:
		c.refuse(field.Forbidden(path.Child("lun"), "not supported yet: use disk or cdrom"))
		return
	case disk.CDRom != nil:
		d.Device, path = "cdrom", path.Child("cdrom")
		bus, readOnly = disk.CDRom.Bus, on(disk.CDRom.ReadOnly)
		d.Target.Tray = string(disk.CDRom.Tray)
	case disk.Disk != nil:
		path = path.Child("disk")
		bus, readOnly = disk.Disk.Bus, disk.Disk.ReadOnly
		if disk.Disk.PciAddress != "" {
			c.refuse(field.Forbidden(path.Child("pciAddress"), "not supported yet: leave it out"))
		}
	}
	if bus == "" {
		bus = c.arch.diskBus
	}
	buses := []v1.DiskBus{v1.DiskBusSATA, v1.DiskBusSCSI, v1.DiskBusUSB, v1.DiskBusVirtio}
	if d.Device == "cdrom" {
		buses = buses[:3]
	}
	if !slices.Contains(buses, bus) {
		c.refuse(field.NotSupported(path.Child("bus"), bus, buses))
		return
	}
	d.Target.Bus = string(bus)
	if bus == v1.DiskBusVirtio {
		d.Model = c.virtio()
	}
	if readOnly {
		d.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	}
}

// drive settles what is behind the device and how it is read and written.
func (c *converter) drive(d *libvirtxml.DomainDisk, disk *v1.Disk, path *field.Path) {
	src, found := c.facts.Sources[disk.Name]
	if !found {
		if disk.CDRom == nil || c.hasVolume(disk.Name) {
			c.refuse(field.Invalid(path.Child("name"), disk.Name, "must be the name of a volume in spec.volumes that is there"))
		}
		return // a drive without a medium
	}
	d.Source, d.BackingStore = source(src), backing(src.Backing)
	d.Driver.Type = string(src.Format)
	if src.ReadOnly {
		d.ReadOnly = &libvirtxml.DomainDiskReadOnly{}
	}
	d.Driver.Cache = cache(disk, src)
	d.Driver.IO = string(disk.IO)
	if disk.IO == "" && src.Block && d.Driver.Cache == string(v1.CacheNone) {
		d.Driver.IO = string(v1.IONative)
	}
	d.Driver.ErrorPolicy = string(v1.DiskErrorPolicyStop)
	if disk.ErrorPolicy != nil {
		d.Driver.ErrorPolicy = string(*disk.ErrorPolicy)
	}
	if d.Device == "disk" && d.ReadOnly == nil {
		d.Driver.Discard = "unmap"
	}
	if disk.Shareable != nil && *disk.Shareable {
		d.Shareable, d.Driver.Cache = &libvirtxml.DomainDiskShareable{}, string(v1.CacheNone)
	}
	d.BlockIO = c.blocks(disk.BlockSize, path.Child("blockSize"))
	if many := c.spec().Devices.BlockMultiQueue; many != nil && *many && d.Target.Bus == string(v1.DiskBusVirtio) {
		sockets, cores, threads := c.topology()
		d.Driver.Queues = ptr(uint(min(uint64(sockets)*uint64(cores)*uint64(threads), maxVCPUs)))
	}
	if disk.Cache == v1.CacheNone && !src.DirectIO {
		c.refuse(field.Invalid(path.Child("cache"), disk.Cache, "must be writethrough or writeback: this volume's filesystem has no direct IO"))
	}
}

// blocks are the sizes that the guest is told the disk works in.
func (c *converter) blocks(b *v1.BlockSize, path *field.Path) *libvirtxml.DomainDiskBlockIO {
	switch {
	case b == nil, b.Custom == nil && (b.MatchVolume == nil || !on(b.MatchVolume.Enabled)):
		return nil
	case b.Custom == nil:
		c.refuse(field.Forbidden(path.Child("matchVolume"), "not supported yet: give the sizes in custom"))
		return nil
	}
	size := b.Custom
	for _, s := range []struct {
		name  string
		bytes uint
	}{{"logical", size.Logical}, {"physical", size.Physical}} {
		if s.bytes < 512 || s.bytes > 2<<20 || s.bytes&(s.bytes-1) != 0 {
			c.refuse(field.Invalid(path.Child("custom", s.name), s.bytes, "must be a power of 2 from 512 to 2097152 bytes"))
		}
	}
	return &libvirtxml.DomainDiskBlockIO{
		LogicalBlockSize: size.Logical, PhysicalBlockSize: size.Physical, DiscardGranularity: size.DiscardGranularity,
	}
}

func (c *converter) hasVolume(name string) bool {
	return slices.ContainsFunc(c.vmi.Spec.Volumes, func(v v1.Volume) bool { return v.Name == name })
}

func cache(disk *v1.Disk, src Source) string {
	switch {
	case disk.Cache != "":
		return string(disk.Cache)
	case src.DirectIO:
		return string(v1.CacheNone)
	default:
		return string(v1.CacheWriteThrough)
	}
}

func source(s Source) *libvirtxml.DomainDiskSource {
	if s.Block {
		return &libvirtxml.DomainDiskSource{Block: &libvirtxml.DomainDiskSourceBlock{Dev: s.Path}}
	}
	return &libvirtxml.DomainDiskSource{File: &libvirtxml.DomainDiskSourceFile{File: s.Path}}
}

// backing spells the whole chain out, with an end, so that no header in an image decides what is opened.
func backing(s *Source) *libvirtxml.DomainDiskBackingStore {
	if s == nil {
		return &libvirtxml.DomainDiskBackingStore{}
	}
	return &libvirtxml.DomainDiskBackingStore{
		Format:       &libvirtxml.DomainDiskFormat{Type: string(s.Format)},
		Source:       source(*s),
		BackingStore: backing(s.Backing),
	}
}

func bootOrder(order *uint) *libvirtxml.DomainDeviceBoot {
	if order == nil {
		return nil
	}
	return &libvirtxml.DomainDeviceBoot{Order: *order}
}

func (c *converter) alias(name string, path *field.Path) *libvirtxml.DomainAlias {
	if !aliasable.MatchString(name) {
		c.refuse(field.Invalid(path, name, "must be 1 to 63 letters, digits, dashes, underscores or dots and start with a letter or digit"))
	}
	return &libvirtxml.DomainAlias{Name: userAlias + name}
}

// targets hands out device names: first those that the guest already knows, then the lowest that is free.
type targets struct {
	known map[string]string // by disk
	used  map[string]bool
}

func (c *converter) targets() *targets {
	t := &targets{known: map[string]string{}, used: map[string]bool{}}
	for _, s := range c.vmi.Status.VolumeStatus {
		if s.Target != "" {
			t.known[s.Name], t.used[s.Target] = s.Target, true
		}
	}
	return t
}

func (t *targets) next(disk, prefix string) string {
	if known := t.known[disk]; len(known) > 2 && known[:2] == prefix {
		return known
	}
	for n := 0; ; n++ {
		if name := prefix + letters(n); !t.used[name] {
			t.used[name] = true
			return name
		}
	}
}

// letters counts a, b, …, z, aa, ab, …
func letters(n int) string {
	s := string(rune('a' + n%26))
	if n < 26 {
		return s
	}
	return letters(n/26-1) + s
}
