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

// busesOf are the buses that a kind of device is found on. A LUN takes commands of SCSI, which no other bus carries.
var busesOf = map[string][]v1.DiskBus{
	"disk":  {v1.DiskBusSATA, v1.DiskBusSCSI, v1.DiskBusUSB, v1.DiskBusVirtio},
	"cdrom": {v1.DiskBusSATA, v1.DiskBusSCSI, v1.DiskBusUSB},
	"lun":   {v1.DiskBusSCSI},
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
			if d.Target.Bus == string(v1.DiskBusSCSI) {
				d.Address = onSCSI(d.Target.Dev)
			}
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
		c.lun(disk, path)
		d.Device, path = "lun", path.Child("lun")
		bus, readOnly = disk.LUN.Bus, disk.LUN.ReadOnly
	case disk.CDRom != nil:
		d.Device, path = "cdrom", path.Child("cdrom")
		bus, readOnly = disk.CDRom.Bus, on(disk.CDRom.ReadOnly)
		d.Target.Tray = string(disk.CDRom.Tray)
	case disk.Disk != nil:
		path = path.Child("disk")
		bus, readOnly = disk.Disk.Bus, disk.Disk.ReadOnly
		d.Address = c.pciAddress(disk.Disk.PciAddress, path.Child("pciAddress"))
	}
	buses := busesOf[d.Device]
	switch {
	case bus == "" && slices.Contains(buses, c.arch.diskBus):
		bus = c.arch.diskBus
	case bus == "":
		bus = v1.DiskBusSCSI
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
	if d.Device != "cdrom" && d.ReadOnly == nil {
		d.Driver.Discard = "unmap"
	}
	if isShareable(disk) {
		d.Shareable = &libvirtxml.DomainDiskShareable{}
	}
	d.BlockIO = c.blocks(d, disk.BlockSize, path.Child("blockSize"))
	if many := c.spec().Devices.BlockMultiQueue; many != nil && *many && d.Target.Bus == string(v1.DiskBusVirtio) {
		d.Driver.Queues = ptr(c.queues())
	}
	switch {
	case isShareable(disk) && d.Driver.Cache != string(v1.CacheNone):
		c.refuse(field.Invalid(path.Child("cache"), disk.Cache, "must be none for a disk that others write to as well"))
	case isShareable(disk) && !src.DirectIO:
		c.refuse(field.Invalid(path.Child("shareable"), true, "needs direct IO, which this volume's filesystem hasn't"))
	case d.Driver.Cache == string(v1.CacheNone) && !src.DirectIO:
		c.refuse(field.Invalid(path.Child("cache"), disk.Cache, "must be writethrough or writeback: this volume's filesystem has no direct IO"))
	}
}

// queues are as many as vCPUs.
func (c *converter) queues() uint {
	sockets, cores, threads := c.topology()
	return uint(min(uint64(sockets)*uint64(cores)*uint64(threads), maxVCPUs))
}

// lun refuses what can't take the commands that a LUN passes on.
func (c *converter) lun(disk *v1.Disk, path *field.Path) {
	if disk.Serial != "" {
		c.refuse(field.Forbidden(path.Child("serial"), "must be left out for a lun: the guest asks the device itself"))
	}
	path = path.Child("lun")
	if disk.LUN.Reservation {
		c.refuse(field.Forbidden(path.Child("reservation"), "not supported yet: leave it out"))
	}
	if src, found := c.facts.Sources[disk.Name]; found && !src.Block {
		c.refuse(field.Invalid(path, disk.Name, "must be a claim with volumeMode Block: commands go to the device itself; use disk for others"))
	}
}

func isShareable(disk *v1.Disk) bool { return disk.Shareable != nil && *disk.Shareable }

func (c *converter) hasVolume(name string) bool {
	return slices.ContainsFunc(c.vmi.Spec.Volumes, func(v v1.Volume) bool { return v.Name == name })
}

func cache(disk *v1.Disk, src Source) string {
	switch {
	case disk.Cache != "":
		return string(disk.Cache)
	case src.DirectIO, isShareable(disk):
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

// onSCSI is the place of a disk on the one SCSI bus: libvirt's own would need another bus for every seventh.
func onSCSI(target string) *libvirtxml.DomainAddress {
	unit := uint(0)
	for _, letter := range target[len("sd"):] {
		unit = unit*26 + uint(letter-'a') + 1
	}
	return &libvirtxml.DomainAddress{Drive: &libvirtxml.DomainAddressDrive{
		Controller: ptr(uint(0)), Bus: ptr(uint(0)), Target: ptr(uint(0)), Unit: ptr(unit - 1),
	}}
}

// letters counts a, b, …, z, aa, ab, …
func letters(n int) string {
	s := string(rune('a' + n%26))
	if n < 26 {
		return s
	}
	return letters(n/26-1) + s
}
