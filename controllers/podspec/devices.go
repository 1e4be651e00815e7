package podspec

import (
	"fmt"
	"slices"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/memorydump"
	"virtstack.io/virtstack/machine/storage"
)

// supportedDevices refuses devices that a launcher can't have, and those of nodes that the administrator permits to
// nobody.
func supportedDevices(vmi *v1.VirtualMachineInstance, cfg config.Config, claims Claims) error {
	const path = "spec.domain.devices"
	d := &vmi.Spec.Domain.Devices
	for i, g := range d.GPUs {
		if err := supportedDevice(fmt.Sprintf("%s.gpus[%d]", path, i), g.DeviceName, g.ClaimRequest, cfg); err != nil {
			return err
		}
	}
	for i, h := range d.HostDevices {
		if err := supportedDevice(fmt.Sprintf("%s.hostDevices[%d]", path, i), h.DeviceName, h.ClaimRequest, cfg); err != nil {
			return err
		}
	}
	if err := supportedLUNs(vmi, claims); err != nil {
		return err
	}
	if err := supportedDump(vmi, claims); err != nil {
		return err
	}
	return supportedFilesystems(vmi, claims)
}

// supportedDump wants a directory for memory dumps, which neither is a disk nor shown to the guest.
func supportedDump(vmi *v1.VirtualMachineInstance, claims Claims) error {
	v := memorydump.Volume(&vmi.Spec)
	if v == nil {
		return nil
	}
	for i, d := range vmi.Spec.Domain.Devices.Disks {
		if d.Name == v.Name {
			return &UnsupportedError{fmt.Sprintf("spec.domain.devices.disks[%d].name", i), fmt.Sprintf("%q: a memoryDump volume is no disk: leave the disk out", d.Name)}
		}
	}
	if claims[v.MemoryDump.ClaimName] {
		i := slices.IndexFunc(vmi.Spec.Volumes, func(o v1.Volume) bool { return o.Name == v.Name })
		return &UnsupportedError{fmt.Sprintf("spec.volumes[%d].memoryDump.claimName", i), fmt.Sprintf("%q: must be a claim with volumeMode Filesystem: dumps are files", v.MemoryDump.ClaimName)}
	}
	return nil
}

// supportedLUNs wants a device behind each LUN, to which the guest's commands go.
func supportedLUNs(vmi *v1.VirtualMachineInstance, claims Claims) error {
	for i, d := range vmi.Spec.Domain.Devices.Disks {
		j := slices.IndexFunc(vmi.Spec.Volumes, func(v v1.Volume) bool { return v.Name == d.Name })
		if d.LUN == nil || j < 0 || claims[storage.Claim(&vmi.Spec.Volumes[j])] {
			continue
		}
		return &UnsupportedError{fmt.Sprintf("spec.domain.devices.disks[%d].lun", i), fmt.Sprintf("%q: its volume must be a claim with volumeMode Block: use disk for others", d.Name)}
	}
	return nil
}

func supportedDevice(field, resource string, claim *v1.ClaimRequest, cfg config.Config) error {
	switch {
	case claim != nil && claim.ClaimName != nil:
		return &UnsupportedError{field + ".claimName", "not supported yet: name a device plugin's resource in deviceName"}
	case !cfg.PermittedDevices[resource]:
		return &UnsupportedError{field + ".deviceName", fmt.Sprintf("%q: must be one of the resources in spec.configuration.permittedHostDevices of the KubeVirt", resource)}
	}
	return nil
}

// supportedFilesystems wants a directory behind each file system.
func supportedFilesystems(vmi *v1.VirtualMachineInstance, claims Claims) error {
	volumes := map[string]*v1.Volume{}
	for i := range vmi.Spec.Volumes {
		volumes[vmi.Spec.Volumes[i].Name] = &vmi.Spec.Volumes[i]
	}
	for i, f := range vmi.Spec.Domain.Devices.Filesystems {
		field := fmt.Sprintf("spec.domain.devices.filesystems[%d].name", i)
		v := volumes[f.Name]
		switch {
		case v == nil:
			return &UnsupportedError{field, fmt.Sprintf("%q: must be the name of a volume in spec.volumes", f.Name)}
		case isDirectory(v, claims):
		default:
			return &UnsupportedError{field, fmt.Sprintf("%q: its volume must be a configMap, secret, serviceAccount or downwardAPI, or a persistentVolumeClaim or dataVolume with volumeMode Filesystem", f.Name)}
		}
	}
	return nil
}

func isDirectory(v *v1.Volume, claims Claims) bool {
	if v.PersistentVolumeClaim != nil || v.DataVolume != nil {
		return !claims[storage.Claim(v)]
	}
	return v.ConfigMap != nil || v.Secret != nil || v.ServiceAccount != nil || v.DownwardAPI != nil
}
