package storage

import (
	v1 "kubevirt.io/api/core/v1"
)

// StateMiB is the size of the claim on which a machine keeps its state; source: contract of KubeVirt.
const StateMiB = 10

// KeepsVariables tells whether the variables of a machine's firmware outlive its Pod.
func KeepsVariables(d *v1.DomainSpec) bool {
	f := d.Firmware
	return f != nil && f.Bootloader != nil && f.Bootloader.EFI != nil && chosen(f.Bootloader.EFI.Persistent)
}

// KeepsTPM tells whether what a machine's TPM holds outlives its Pod.
func KeepsTPM(d *v1.DomainSpec) bool {
	t := d.Devices.TPM
	return t != nil && (t.Enabled == nil || *t.Enabled) && chosen(t.Persistent)
}

// KeepsState tells whether a machine has a claim of its own for what is neither in its spec nor on its disks.
func KeepsState(d *v1.DomainSpec) bool { return KeepsVariables(d) || KeepsTPM(d) }

func chosen(b *bool) bool { return b != nil && *b }
