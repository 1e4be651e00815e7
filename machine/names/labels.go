package names

import (
	"strings"

	v1 "kubevirt.io/api/core/v1"
)

// Values and keys of the contract that kubevirt.io/api has no constant for.
const (
	// LauncherApp is the value of the label kubevirt.io on launcher Pods.
	LauncherApp = "virt-launcher"
	// Schedulable is the node label that virt-handler holds at "true" while its device plugins serve.
	Schedulable = v1.NodeSchedulable
	// UnpausedGate is the readiness gate of launcher Pods.
	UnpausedGate = string(v1.VirtualMachineUnpaused)
	// Heartbeat is the node annotation that virt-handler renews, RFC 3339.
	Heartbeat = v1.VirtHandlerHeartbeat
	// RunOverride is the VM annotation with what holds in place of a run strategy that comes from Git; OverrideManager is
	// the field manager that writes it, for virt-api, and drops it at its end, for virt-controller.
	RunOverride     = "virtstack.io/run-override"
	OverrideManager = "virt-api-override"
	// Untyped is in what the API server says, with HTTP status 500 as of an error of its own, where it refuses to apply a
	// field that the kind doesn't have, or has of another type.
	Untyped = "failed to create typed patch object"
	// Defaults is the VMI annotation with the defaults of the configuration that the VMI was made with.
	Defaults = "virtstack.io/defaults"
)

// NameLabel returns the value of the launcher Pod's label vm.kubevirt.io/name: the host name, but for machines whose name
// is cut for it, which must not be taken for one another.
func NameLabel(vmi *v1.VirtualMachineInstance) string {
	if len(vmi.Name) > 63 {
		return LabelValue(vmi.Name)
	}
	return Hostname(vmi)
}

// Hostname returns the host name of a VMI's Pod and guest: its first dot-separated part, cut to a DNS label.
func Hostname(vmi *v1.VirtualMachineInstance) string {
	name := vmi.Spec.Hostname
	if name == "" {
		name, _, _ = strings.Cut(vmi.Name, ".")
	}
	if len(name) > 63 {
		name = strings.TrimRight(name[:63], "-")
	}
	return name
}
