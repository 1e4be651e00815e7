package domain

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"
	"libvirt.org/go/libvirtxml"
)

// Sizes of a disk's blocks, in bytes.
const (
	smallestBlock = 512
	largestBlock  = 2 << 20
)

// blocks are the sizes that the guest is told the disk works in: those of the spec, or those of what is behind it.
func (c *converter) blocks(d *libvirtxml.DomainDisk, b *v1.BlockSize, path *field.Path) *libvirtxml.DomainDiskBlockIO {
	switch {
	case MatchesVolume(b):
		return c.matched(d, path.Child("matchVolume"))
	case b == nil || b.Custom == nil:
		return nil
	}
	size := b.Custom
	for _, s := range []struct {
		name  string
		bytes uint
	}{{"logical", size.Logical}, {"physical", size.Physical}} {
		if !isBlock(s.bytes) {
			c.refuse(field.Invalid(path.Child("custom", s.name), s.bytes, "must be a power of 2 from 512 to 2097152 bytes"))
		}
	}
	return &libvirtxml.DomainDiskBlockIO{
		LogicalBlockSize: size.Logical, PhysicalBlockSize: size.Physical, DiscardGranularity: size.DiscardGranularity,
	}
}

// MatchesVolume tells whether a disk is to have the block sizes of its volume.
func MatchesVolume(b *v1.BlockSize) bool {
	return b != nil && b.Custom == nil && b.MatchVolume != nil && on(b.MatchVolume.Enabled)
}

// matched gives a disk the sizes that were found behind it. A device may know one of the two only.
func (c *converter) matched(d *libvirtxml.DomainDisk, path *field.Path) *libvirtxml.DomainDiskBlockIO {
	found := c.facts.Sources[d.Alias.Name[len(userAlias):]].Blocks
	logical, physical, discard := found.Logical, found.Physical, found.Discard
	if logical == 0 {
		logical = physical
	}
	if physical == 0 {
		physical = logical
	}
	switch {
	case logical == 0:
		return nil // nobody looked
	case !isBlock(logical) || !isBlock(physical):
		c.refuse(field.Invalid(path, true, fmt.Sprintf("its volume works in blocks of %d and %d bytes, which no disk can: leave it out, or give the sizes in custom", logical, physical)))
	case d.Target.Bus == string(v1.DiskBusSATA) && logical != smallestBlock:
		c.refuse(field.Invalid(path, true, fmt.Sprintf("its volume works in blocks of %d bytes, and bus sata in blocks of 512: use virtio or scsi", logical)))
	}
	if discard%logical != 0 {
		discard = physical
	}
	return &libvirtxml.DomainDiskBlockIO{LogicalBlockSize: logical, PhysicalBlockSize: physical, DiscardGranularity: &discard}
}

func isBlock(bytes uint) bool {
	return bytes >= smallestBlock && bytes <= largestBlock && bytes&(bytes-1) == 0
}
