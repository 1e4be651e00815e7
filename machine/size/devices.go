package size

import (
	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/names"
)

// What devices need that a plain guest has none of, in bytes: the processes of a TPM, of a file system and of a probe, from measured
// proportional set sizes with a margin; for devices of the node what the contract gives, which can't be measured
// without one. Source: docs/decisions/0005-memory-overhead.md.
const (
	tpmMemory        = 8 * mib
	filesystemMemory = 8 * mib
	passedMemory     = 1024 * mib
	probeMemory      = 16 * mib
)

// askers returns how many programs may ask the guest's agent at one time, for the kubelet's probes.
func askers(vmi *v1.VirtualMachineInstance) (n int64) {
	for _, p := range []*v1.Probe{vmi.Spec.ReadinessProbe, vmi.Spec.LivenessProbe} {
		if p != nil && (p.Exec != nil || p.GuestAgentPing != nil) {
			n++
		}
	}
	return n
}

// deviceMemory returns the bytes that a guest's devices need beyond those of a plain guest.
func deviceMemory(d *v1.Devices) int64 {
	bytes := filesystemMemory * int64(len(d.Filesystems))
	if HasTPM(d) {
		bytes += tpmMemory
	}
	if len(d.GPUs)+len(d.HostDevices) > 0 {
		bytes += passedMemory
	}
	return bytes
}

// HasTPM tells whether a guest has a TPM: naming one turns it on.
func HasTPM(d *v1.Devices) bool {
	return d.TPM != nil && (d.TPM.Enabled == nil || *d.TPM.Enabled)
}

// HasVsock tells whether a guest has a socket to its node.
func HasVsock(d *v1.Devices) bool { return d.AutoattachVSOCK != nil && *d.AutoattachVSOCK }

// addDevices asks for the node's devices that a guest has: one of a resource for each time that it is named.
func addDevices(r *k8sv1.ResourceRequirements, d *v1.Devices) {
	var wanted []string
	if HasVsock(d) {
		wanted = append(wanted, names.VsockDevice)
	}
	for _, g := range d.GPUs {
		wanted = append(wanted, g.DeviceName)
	}
	for _, h := range d.HostDevices {
		wanted = append(wanted, h.DeviceName)
	}
	for _, name := range wanted {
		if name == "" {
			continue // one that is claimed
		}
		for _, list := range []k8sv1.ResourceList{r.Limits, r.Requests} {
			q := list[k8sv1.ResourceName(name)]
			q.Add(*resource.NewQuantity(1, resource.DecimalSI))
			list[k8sv1.ResourceName(name)] = q
		}
	}
}
