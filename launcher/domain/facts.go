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
	// DirectIO is set where Path can be opened with O_DIRECT.
	DirectIO bool
}

// Interface is what was prepared for one network interface of the guest.
type Interface struct {
	// Tap is the device in the Pod's network namespace.
	Tap string
	// MAC of the guest's side, in any spelling.
	MAC string
	// MTU in bytes; 0 leaves QEMU's default.
	MTU uint
}

// Sockets are paths of the unix sockets on which QEMU and the launcher meet.
type Sockets struct {
	// Serial is where the launcher listens and QEMU connects its first serial port to.
	Serial string
	// Agent and VNC are where QEMU listens.
	Agent string
	VNC   string
}
