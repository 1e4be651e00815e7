package podspec

import (
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

// sidecars is the annotation by which a VMI asks for programs that change its domain. No other would do in their place.
const sidecars = "hooks.kubevirt.io/hookSidecars"

// UnsupportedError says which field of a VMI asks for something that can't be rendered.
type UnsupportedError struct {
	// Field is its path, Want what would be right.
	Field, Want string
}

func (e *UnsupportedError) Error() string { return e.Field + ": " + e.Want }

// supported refuses what the launcher doesn't do: a guest without something its owner asked for is worse than none.
func supported(vmi *v1.VirtualMachineInstance) error {
	checks := []func(*v1.VirtualMachineInstance) *UnsupportedError{supportedVolumes, supportedCredentials, supportedNetworks, supportedInterfaces, supportedMachine, supportedProbes}
	for _, check := range checks {
		if err := check(vmi); err != nil {
			return err
		}
	}
	return nil
}

func supportedMachine(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	d := vmi.Spec.Domain
	for _, c := range []struct {
		asked bool
		field string
	}{
		{d.LaunchSecurity != nil, "spec.domain.launchSecurity"},
		{len(vmi.Spec.ResourceClaims) > 0, "spec.resourceClaims"},
		{vmi.Annotations[sidecars] != "", "metadata.annotations[" + sidecars + "]"},
		{vmi.Annotations[v1.IgnitionAnnotation] != "", "metadata.annotations[" + v1.IgnitionAnnotation + "]"},
	} {
		if c.asked {
			return &UnsupportedError{c.field, "not supported yet"}
		}
	}
	return nil
}

// supportedNUMA wants somebody to have seen to the call that binds memory to a NUMA cell: the default profiles of container
// runtimes refuse it to who has no capability, and QEMU would only say that it isn't permitted.
func supportedNUMA(vmi *v1.VirtualMachineInstance, cfg config.Config) error {
	c := vmi.Spec.Domain.CPU
	if c == nil || c.NUMA == nil || c.NUMA.GuestMappingPassthrough == nil || cfg.Seccomp != nil {
		return nil
	}
	return &UnsupportedError{"spec.domain.cpu.numa.guestMappingPassthrough", "needs a seccomp profile that permits mbind: the administrator must name one in " +
		"spec.configuration.seccompConfiguration.virtualMachineInstanceProfile.customProfile.localhostProfile of the KubeVirt"}
}

func supportedProbes(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for _, c := range []struct {
		field string
		probe *v1.Probe
	}{{"spec.readinessProbe", vmi.Spec.ReadinessProbe}, {"spec.livenessProbe", vmi.Spec.LivenessProbe}} {
		if p := c.probe; p != nil && p.HTTPGet == nil && p.TCPSocket == nil && p.GuestAgentPing == nil && (p.Exec == nil || len(p.Exec.Command) == 0) {
			return &UnsupportedError{c.field, "must have httpGet, tcpSocket, guestAgentPing, or exec with a command"}
		}
	}
	return nil
}
