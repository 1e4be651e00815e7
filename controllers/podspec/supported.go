package podspec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	v1 "kubevirt.io/api/core/v1"
)

// UnsupportedError says which field of a VMI asks for something that can't be rendered.
type UnsupportedError struct {
	// Field is its path, Want what would be right.
	Field, Want string
}

func (e *UnsupportedError) Error() string { return e.Field + ": " + e.Want }

// supported refuses what the launcher doesn't do: a guest without something its owner asked for is worse than none.
func supported(vmi *v1.VirtualMachineInstance) error {
	checks := []func(*v1.VirtualMachineInstance) *UnsupportedError{supportedVolumes, supportedNetworks, supportedInterfaces, supportedMachine, supportedProbes}
	for _, check := range checks {
		if err := check(vmi); err != nil {
			return err
		}
	}
	return nil
}

func supportedVolumes(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for i, v := range vmi.Spec.Volumes {
		field := fmt.Sprintf("spec.volumes[%d]", i)
		if len(validation.IsDNS1123Subdomain(v.Name)) > 0 || len(v.Name) > validation.DNS1123LabelMaxLength {
			return &UnsupportedError{field + ".name", fmt.Sprintf("%q must be lower-case letters, digits, dots and dashes, at most 63", v.Name)}
		}
		if v.ContainerDisk == nil && v.EmptyDisk == nil && v.CloudInitNoCloud == nil {
			return &UnsupportedError{field + "." + source(v), "not supported yet; use containerDisk, emptyDisk or cloudInitNoCloud"}
		}
	}
	return nil
}

// source returns the name of the one field that a volume's source sets.
func source(v v1.Volume) string {
	raw, _ := json.Marshal(v.VolumeSource)
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &fields)
	var keys []string
	for k := range fields {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return strings.Join(keys, ",")
}

func supportedNetworks(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for i, n := range vmi.Spec.Networks {
		if n.Pod == nil {
			return &UnsupportedError{fmt.Sprintf("spec.networks[%d]", i), fmt.Sprintf("network %q: only the Pod's network (pod) is supported yet", n.Name)}
		}
	}
	return nil
}

func supportedInterfaces(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for i, n := range vmi.Spec.Domain.Devices.Interfaces {
		field := fmt.Sprintf("spec.domain.devices.interfaces[%d]", i)
		if n.Binding != nil {
			return &UnsupportedError{field + ".binding", fmt.Sprintf("network binding plugin %q is not registered", n.Binding.Name)}
		}
		if n.Masquerade == nil {
			return &UnsupportedError{field, fmt.Sprintf("interface %q: only the binding masquerade is supported yet", n.Name)}
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
		{d.CPU != nil && d.CPU.DedicatedCPUPlacement, "spec.domain.cpu.dedicatedCpuPlacement"},
		{d.CPU != nil && d.CPU.NUMA != nil, "spec.domain.cpu.numa"},
		{d.CPU != nil && d.CPU.Realtime != nil, "spec.domain.cpu.realtime"},
		{d.Memory != nil && d.Memory.Hugepages != nil, "spec.domain.memory.hugepages"},
		{d.Firmware != nil && d.Firmware.KernelBoot != nil, "spec.domain.firmware.kernelBoot"},
		{d.LaunchSecurity != nil, "spec.domain.launchSecurity"},
		{len(d.Devices.GPUs) > 0, "spec.domain.devices.gpus"},
		{len(d.Devices.HostDevices) > 0, "spec.domain.devices.hostDevices"},
		{len(d.Devices.Filesystems) > 0, "spec.domain.devices.filesystems"},
		{d.Devices.TPM != nil, "spec.domain.devices.tpm"},
		{d.Devices.AutoattachVSOCK != nil && *d.Devices.AutoattachVSOCK, "spec.domain.devices.autoattachVSOCK"},
		{len(vmi.Spec.AccessCredentials) > 0, "spec.accessCredentials"},
		{len(vmi.Spec.ResourceClaims) > 0, "spec.resourceClaims"},
	} {
		if c.asked {
			return &UnsupportedError{c.field, "not supported yet"}
		}
	}
	return nil
}

func supportedProbes(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for _, c := range []struct {
		field string
		probe *v1.Probe
	}{{"spec.readinessProbe", vmi.Spec.ReadinessProbe}, {"spec.livenessProbe", vmi.Spec.LivenessProbe}} {
		if c.probe != nil && c.probe.HTTPGet == nil && c.probe.TCPSocket == nil {
			return &UnsupportedError{c.field, "only httpGet and tcpSocket are supported yet"}
		}
	}
	return nil
}
