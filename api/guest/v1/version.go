package guestv1

import "strconv"

// OldestProtocol is the oldest version of the protocol that this build speaks. A node agent works with launchers of the
// last two minor releases and the other way round, so a version is dropped only when no release that speaks it is
// supported.
const OldestProtocol uint32 = 1

// Protocol is the newest version that this build speaks.
var Protocol = stamped(newest)

// newest is written by the linker (-X) for a build that stands in for a later release, in tests of upgrades.
var newest = "1"

// stamped reads the linker's word. A wrong one ends the program before it speaks with anybody.
func stamped(word string) uint32 {
	n, err := strconv.ParseUint(word, 10, 32)
	if err != nil || uint32(n) < OldestProtocol {
		panic("the linker was given protocol " + strconv.Quote(word) + ", want a number of at least " + strconv.Itoa(int(OldestProtocol)))
	}
	return uint32(n)
}

// Paths that virt-controller (who renders the Pod), virt-handler (who reaches in from the node) and virt-launcher
// (who lives there) agree on.
const (
	// RunVolume is the Pod's emptyDir that holds the launcher's sockets, mounted at RunDir.
	RunVolume = "run"
	RunDir    = "/var/run/virtstack"
	// GuestSocket is the gRPC socket in RunDir; ConsoleSocket carries the bytes of the first serial port.
	GuestSocket   = "guest.sock"
	ConsoleSocket = "console.sock"
	// DiskDir holds what the launcher makes itself: overlays, empty disks, cloud-init seeds.
	DiskVolume = "disks"
	DiskDir    = "/var/run/virtstack-disks"
	// ImageDir holds one mounted image volume per containerDisk, named as the VMI's volume.
	ImageDir = "/var/run/virtstack-images"
	// KernelDir is the mounted image volume of spec.domain.firmware.kernelBoot.
	KernelDir = "/var/run/virtstack-kernel"
	// StateDir is on the claim of a VM whose TPM or whose firmware's variables outlive the Pod.
	StateVolume = "state"
	StateDir    = "/var/run/virtstack-state"
	// ClaimDir holds one directory per PVC with volumeMode Filesystem, or hostDisk, named as the VMI's volume; a PVC's disk
	// is disk.img.
	ClaimDir = "/var/run/virtstack-claims"
	// BlockDir holds one block device per PVC with volumeMode Block, named as the VMI's volume.
	BlockDir = "/dev/virtstack"
	// SecretDir holds one directory per volume whose data the kubelet brings: a Secret's, a ConfigMap's, a service
	// account's or the Pod's own.
	SecretDir = "/var/run/virtstack-secrets"
	// CredentialDir holds one directory per Secret of spec.accessCredentials, named as the Secret.
	CredentialDir = "/var/run/virtstack-credentials"

	// HugePageDir is where a file system of huge pages is mounted for a guest whose memory is to be files there.
	HugePageDir = "/dev/hugepages"

	// User is the uid and gid of the launcher, libvirtd and QEMU.
	User = 107
	// ComputeContainer is the launcher's container, the Pod's first.
	ComputeContainer = "compute"
)
