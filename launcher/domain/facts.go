package domain

// Facts are what the launcher and its node agent found out or prepared: everything about a guest that its spec
// doesn't say.
type Facts struct {
	// KVM is there; else the guest is emulated (TCG).
	KVM bool
	// Sources holds what is behind each volume, by the volume's name.
	Sources map[string]Source
	// Interfaces holds what was prepared for each interface, by the interface's name.
	Interfaces map[string]Interface
	Sockets    Sockets
	Firmware   Firmware
	// Kernel is what the guest boots instead of what its disks hold.
	Kernel Kernel
	// Filesystems holds, by the volume's name, the socket of the process that serves each directory the guest mounts.
	Filesystems map[string]string
	// Assigned holds what device plugins gave the Pod, by resource in the spelling of their environment variables.
	Assigned map[string]Assigned
	// CPUs are those of the node that the Pod may run on, in any order; only a guest that has CPUs for itself asks.
	CPUs []HostCPU
	// Tables holds the files of ACPI tables, by their kind: slic or msdm.
	Tables map[string]string
	SMBIOS SMBIOS
	// Balloon says how the guest's free memory is looked after.
	Balloon Balloon
}

// SMBIOS is what the configuration says that every guest reads about its maker; the maker of one that says nothing is
// KubeVirt, its product None.
type SMBIOS struct {
	Manufacturer, Product, Family, Version, SKU string
}

// Balloon is what the configuration says of every guest's balloon.
type Balloon struct {
	// StatsPeriod is how often the guest is asked for its memory figures, in seconds; 0: never; nil: every ten.
	StatsPeriod *uint
	// KeepFreePages says that pages which the guest doesn't use are not given back to the node.
	KeepFreePages bool
}

// Format is a disk image's format, as QEMU names it.
type Format string

// Formats a guest's disk may have.
const (
	Raw   Format = "raw"
	QCOW2 Format = "qcow2"
)

// Source is a file or a block device that a guest's disk reads and writes.
type Source struct {
	// Path is absolute and inside the launcher's own directories.
	Path string
	// Block tells a block device from a regular file.
	Block  bool
	Format Format
	// Backing is read where Path holds nothing; nil: nothing is behind it.
	Backing *Source
	// ReadOnly is set where Path can't be written to.
	ReadOnly bool
	// DirectIO is set where Path can be opened with O_DIRECT.
	DirectIO bool
	// Blocks are found out for disks that are to have those of their volume.
	Blocks Blocks
}

// Blocks are the sizes in bytes that a device, or a file system, works in; 0: it doesn't say.
type Blocks struct {
	Logical, Physical, Discard uint
}

// Interface is what was prepared for one network interface of the guest.
type Interface struct {
	// Tap is the device in the Pod's network namespace.
	Tap string
	// MAC of the guest's side, in any spelling.
	MAC string
	// MTU in bytes; 0 leaves QEMU's default.
	MTU uint
	// Queues of the tap device; 0 or 1 is one without several.
	Queues uint
}

// Sockets are paths of the unix sockets on which QEMU and the launcher meet.
type Sockets struct {
	// Serial is where the launcher listens and QEMU connects its first serial port to.
	Serial string
	// Agent and VNC are where QEMU listens: for the guest agent and for a viewer.
	Agent string
	VNC   string
	// Metrics is where QEMU listens for who tells the guest of its node's load.
	Metrics string
}

// Firmware are the files of UEFI that the launcher's image has; an empty path is one it hasn't.
type Firmware struct {
	// Plain boots anything, Secure what is signed.
	Plain, Secure EFI
	// Vars is where this guest's variables are kept.
	Vars string
	// TPM is the directory for what the TPM of this guest holds, where that outlives the Pod.
	TPM string
}

// EFI is one build of UEFI: its code and the variables that a new guest starts with.
type EFI struct {
	Code, Vars string
}

// Kernel are files in the image that the spec names; an empty path is a file that it doesn't name.
type Kernel struct {
	Kernel, Initrd string
}

// ImageFirmware returns the UEFI of the launcher's image, which is Debian's for amd64; the guest's variables are kept in
// the file vars. Those of Secure hold the keys that most signed boot loaders are signed with.
func ImageFirmware(vars string) Firmware {
	const dir = "/usr/share/OVMF/"
	return Firmware{
		Plain:  EFI{Code: dir + "OVMF_CODE_4M.fd", Vars: dir + "OVMF_VARS_4M.fd"},
		Secure: EFI{Code: dir + "OVMF_CODE_4M.secboot.fd", Vars: dir + "OVMF_VARS_4M.ms.fd"},
		Vars:   vars,
	}
}
