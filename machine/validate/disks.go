package validate

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/defaults"
)

var (
	diskBuses     = []v1.DiskBus{v1.DiskBusVirtio, v1.DiskBusSATA, v1.DiskBusSCSI, v1.DiskBusUSB}
	lunBuses      = []v1.DiskBus{v1.DiskBusSCSI} // no other bus takes its commands
	cdromBuses    = []v1.DiskBus{v1.DiskBusSATA, v1.DiskBusSCSI, v1.DiskBusUSB}
	caches        = []v1.DriverCache{v1.CacheNone, v1.CacheWriteThrough, v1.CacheWriteBack}
	ioModes       = []v1.DriverIO{v1.IONative, v1.IOThreads}
	errorPolicies = []v1.DiskErrorPolicy{
		v1.DiskErrorPolicyStop, v1.DiskErrorPolicyIgnore, v1.DiskErrorPolicyReport, v1.DiskErrorPolicyEnospace,
	}
)

// disks checks disks and filesystems, and that each has a volume. A volume needs neither: it is given a
// disk when the machine is made.
func disks(devices *field.Path, spec *v1.VirtualMachineInstanceSpec, from supplies) field.ErrorList {
	usual := v1.DiskBus("") // a preference may say another
	if !from.preference {
		usual = defaults.DiskBus(architecture(spec))
	}

	held := map[string]*v1.Volume{}
	for i := range spec.Volumes {
		held[spec.Volumes[i].Name] = &spec.Volumes[i]
	}
	d := &spec.Domain.Devices
	path := devices.Child("disks")
	errs := unique(len(d.Disks), func(i int) (string, *field.Path) {
		return d.Disks[i].Name, path.Index(i).Child("name")
	})
	for i := range d.Disks {
		errs = append(errs, disk(path.Index(i), &d.Disks[i], held[d.Disks[i].Name], usual)...)
	}
	path = devices.Child("filesystems")
	errs = append(errs, unique(len(d.Filesystems), func(i int) (string, *field.Path) {
		return d.Filesystems[i].Name, path.Index(i).Child("name")
	})...)
	for i := range d.Filesystems {
		name := d.Filesystems[i].Name
		at := path.Index(i).Child("name")
		errs = append(errs, label(at, name)...)
		if held[name] == nil {
			errs = append(errs, noVolume(at, name))
		}
		if d.Filesystems[i].Virtiofs == nil {
			errs = append(errs, field.Required(path.Index(i).Child("virtiofs"), "must be given, as {}: it is the one kind of file system"))
		}
	}
	return errs
}

// disk checks one disk; usual is the bus of one that names none.
func disk(path *field.Path, d *v1.Disk, volume *v1.Volume, usual v1.DiskBus) field.ErrorList {
	errs := label(path.Child("name"), d.Name)
	if len(errs) == 0 && volume == nil && d.CDRom == nil { // a drive may be empty, see diskUses
		errs = append(errs, noVolume(path.Child("name"), d.Name))
	}
	if found := set(d.DiskDevice); len(found) > 1 {
		errs = append(errs, tooMany(path, found)...)
	}
	errs = append(errs, target(path, d)...)
	errs = append(errs, onBus(path, d, usual)...)
	if d.LUN != nil && volume != nil && volume.PersistentVolumeClaim == nil && volume.DataVolume == nil {
		errs = append(errs, field.Invalid(path.Child("lun"), d.Name,
			"must be of a volume with persistentVolumeClaim or dataVolume: use disk for others"))
	}
	if d.LUN != nil && d.Serial != "" {
		errs = append(errs, field.Forbidden(path.Child("serial"), "must be left out for a lun: the guest asks the device itself"))
	}
	if volume != nil && volume.DownwardMetrics != nil && (d.Disk == nil || d.Disk.Bus != v1.DiskBusVirtio && d.Disk.Bus != "") {
		errs = append(errs, field.Required(path.Child("disk", "bus"), "must be virtio for a volume with downwardMetrics"))
	}
	errs = append(errs, serial(path.Child("serial"), d.Serial)...)
	errs = append(errs, oneOf(path.Child("cache"), d.Cache, caches)...)
	if d.Shareable != nil && *d.Shareable && d.Cache != "" && d.Cache != v1.CacheNone {
		errs = append(errs, field.Invalid(path.Child("cache"), string(d.Cache), "must be none for a shareable disk"))
	}
	errs = append(errs, oneOf(path.Child("io"), d.IO, ioModes)...)
	if d.ErrorPolicy != nil {
		errs = append(errs, oneOf(path.Child("errorPolicy"), *d.ErrorPolicy, errorPolicies)...)
	}
	return append(errs, blockSize(path.Child("blockSize"), d, usual)...)
}

func noVolume(path *field.Path, name string) *field.Error {
	return field.Invalid(path, short(name), "must be the name of one of the machine's volumes: add the volume or remove this")
}

// target checks the bus.
func target(path *field.Path, d *v1.Disk) field.ErrorList {
	var errs field.ErrorList
	if t := d.Disk; t != nil {
		errs = append(errs, oneOf(path.Child("disk", "bus"), t.Bus, diskBuses)...)
		if t.PciAddress != "" {
			errs = append(errs, pciAddress(path.Child("disk", "pciAddress"), t.PciAddress)...)
		}
	}
	if t := d.LUN; t != nil {
		errs = append(errs, oneOf(path.Child("lun", "bus"), t.Bus, lunBuses)...)
	}
	if t := d.CDRom; t != nil {
		errs = append(errs, oneOf(path.Child("cdrom", "bus"), t.Bus, cdromBuses)...)
		errs = append(errs, oneOf(path.Child("cdrom", "tray"), t.Tray, []v1.TrayState{v1.TrayStateOpen, v1.TrayStateClosed})...)
	}
	return errs
}

// onBus checks what not every bus has.
func onBus(path *field.Path, d *v1.Disk, usual v1.DiskBus) field.ErrorList {
	_, bus := busOf(d)
	if bus == "" {
		bus = usual
	}
	var errs field.ErrorList
	refuse := func(at *field.Path, value any, detail string) { errs = append(errs, field.Invalid(at, value, detail)) }
	other := bus != "" && bus != v1.DiskBusVirtio
	if t := d.Disk; t != nil && t.ReadOnly && bus == v1.DiskBusSATA {
		refuse(path.Child("disk", "readonly"), true, "must not be set on bus sata: use virtio or scsi")
	}
	if t := d.Disk; t != nil && t.PciAddress != "" && other {
		refuse(path.Child("disk", "pciAddress"), short(t.PciAddress), fmt.Sprintf("needs bus virtio, not %s", short(string(bus))))
	}
	if d.DedicatedIOThread != nil && *d.DedicatedIOThread && other {
		refuse(path.Child("dedicatedIOThread"), true, fmt.Sprintf("needs bus virtio, not %s", short(string(bus))))
	}
	return errs
}

func blockSize(path *field.Path, d *v1.Disk, usual v1.DiskBus) field.ErrorList {
	b := d.BlockSize
	if b == nil || b.Custom == nil {
		return nil
	}
	at := path.Child("custom")
	matched := b.MatchVolume != nil && (b.MatchVolume.Enabled == nil || *b.MatchVolume.Enabled)
	if matched {
		return field.ErrorList{field.Invalid(path, "custom, matchVolume", "must have only one of these")}
	}
	c := b.Custom
	var errs field.ErrorList
	for _, size := range []struct {
		name  string
		bytes uint
	}{{"logical", c.Logical}, {"physical", c.Physical}} {
		if size.bytes < 512 || size.bytes > 2<<20 || size.bytes&(size.bytes-1) != 0 {
			errs = append(errs, field.Invalid(at.Child(size.name), size.bytes,
				"must be a power of 2 from 512 to 2097152 bytes"))
		}
	}
	if len(errs) == 0 && c.Logical > c.Physical {
		errs = append(errs, field.Invalid(at.Child("logical"), c.Logical,
			fmt.Sprintf("must be at most the physical size, %d", c.Physical)))
	}
	_, bus := busOf(d)
	if sata := bus == v1.DiskBusSATA || bus == "" && usual == v1.DiskBusSATA; sata && c.Logical != 512 {
		errs = append(errs, field.Invalid(at.Child("logical"), c.Logical, "must be 512 on bus sata: use virtio or scsi"))
	}
	if g := c.DiscardGranularity; g != nil && c.Logical > 0 && *g%c.Logical != 0 {
		errs = append(errs, field.Invalid(at.Child("discardGranularity"), *g,
			fmt.Sprintf("must be a multiple of the logical size, %d", c.Logical)))
	}
	return errs
}

// maxBootOrder is QEMU's: its bootindex has 32 bits with a sign.
const maxBootOrder = math.MaxInt32

// bootOrder wants numbers from 1 that no two devices share.
func bootOrder(devices *field.Path, d *v1.Devices) field.ErrorList {
	var errs field.ErrorList
	first := map[uint]string{}
	check := func(path *field.Path, order *uint, name string) {
		if order == nil {
			return
		}
		other, taken := first[*order]
		switch {
		case *order == 0:
			errs = append(errs, field.Invalid(path.Child("bootOrder"), *order, "must be at least 1"))
		case *order > maxBootOrder:
			errs = append(errs, field.Invalid(path.Child("bootOrder"), *order, fmt.Sprintf("must be at most %d", maxBootOrder)))
		case taken:
			errs = append(errs, field.Invalid(path.Child("bootOrder"), *order,
				fmt.Sprintf("must be unique: %s has %d too", other, *order)))
		default:
			first[*order] = name
		}
	}
	for i := range d.Disks {
		check(devices.Child("disks").Index(i), d.Disks[i].BootOrder, fmt.Sprintf("disk %q", short(d.Disks[i].Name)))
	}
	for i := range d.Interfaces {
		check(devices.Child("interfaces").Index(i), d.Interfaces[i].BootOrder,
			fmt.Sprintf("interface %q", short(d.Interfaces[i].Name)))
	}
	return errs
}
