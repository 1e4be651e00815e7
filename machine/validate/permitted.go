package validate

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

// Annotations that stand for a feature.
const (
	ignition = "kubevirt.io/ignitiondata"
	sidecars = "hooks.kubevirt.io/hookSidecars"
)

// Permitted returns what in a machine's spec and annotations the cluster's configuration does not permit: what
// needs a feature gate that is off, machine types it does not offer, a binding it rules out. at is where the object
// with metadata and spec is; nil is the root.
func Permitted(at *field.Path, annotations map[string]string, spec *v1.VirtualMachineInstanceSpec, c config.Config) field.ErrorList {
	var errs field.ErrorList
	for _, u := range uses(at, annotations, spec) {
		if c.Enabled(u.gate) {
			continue
		}
		errs = append(errs, field.Forbidden(u.at, fmt.Sprintf("%s needs the feature gate %s: add it to "+
			"spec.configuration.developerConfiguration.featureGates of the KubeVirt, or remove this", u.what, u.gate)))
	}
	errs = append(errs, opened(at.Child("spec", "volumes"), spec, c)...)
	errs = append(errs, machineType(at.Child("spec", "domain", "machine", "type"), spec, c)...)
	return append(errs, podBridge(at.Child("spec"), spec, c)...)
}

// opened wants every hostDisk to be in a directory that the administrator has opened: the gate alone opens none.
func opened(at *field.Path, spec *v1.VirtualMachineInstanceSpec, c config.Config) field.ErrorList {
	if !c.Enabled("HostDisk") {
		return nil
	}
	var errs field.ErrorList
	for i, v := range spec.Volumes {
		if v.HostDisk == nil || len(filePath(nil, v.HostDisk.Path)) > 0 || slices.Contains(c.HostDiskDirs, path.Dir(v.HostDisk.Path)) {
			continue
		}
		errs = append(errs, field.Invalid(at.Index(i).Child("hostDisk", "path"), short(v.HostDisk.Path), fmt.Sprintf("must be a file in a directory "+
			"that annotation %s of the KubeVirt names (now %q): ask the administrator for %s", config.HostDiskAnnotation, short(strings.Join(c.HostDiskDirs, ",")), short(path.Dir(v.HostDisk.Path)))))
	}
	return errs
}

// use is a place in a machine that needs a gate.
type use struct {
	at         *field.Path
	what, gate string
}

func uses(at *field.Path, annotations map[string]string, spec *v1.VirtualMachineInstanceSpec) []use {
	var found []use
	notes, domain := at.Child("metadata", "annotations"), at.Child("spec", "domain")
	if _, ok := annotations[ignition]; ok {
		found = append(found, use{notes.Key(ignition), "ignition data", "ExperimentalIgnitionSupport"})
	}
	if _, ok := annotations[sidecars]; ok {
		found = append(found, use{notes.Key(sidecars), "a hook sidecar", "Sidecar"})
	}
	d := &spec.Domain
	if d.RebootPolicy != nil {
		found = append(found, use{domain.Child("rebootPolicy"), "rebootPolicy", "RebootPolicy"})
	}
	if d.Memory != nil && d.Memory.ReservedOverhead != nil {
		found = append(found, use{domain.Child("memory", "reservedOverhead"), "reservedOverhead", "ReservedOverheadMemlock"})
	}
	found = append(found, securityUses(domain.Child("launchSecurity"), spec)...)
	found = append(found, deviceUses(domain.Child("devices"), spec)...)
	found = append(found, diskUses(at.Child("spec"), spec)...)
	if len(spec.UtilityVolumes) > 0 {
		found = append(found, use{at.Child("spec", "utilityVolumes"), "a utility volume", "UtilityVolumes"})
	}
	return found
}

func securityUses(path *field.Path, spec *v1.VirtualMachineInstanceSpec) []use {
	l := spec.Domain.LaunchSecurity
	switch {
	case l == nil:
		return nil
	case architecture(spec) == s390x:
		return []use{{path, "launchSecurity on s390x", "SecureExecution"}}
	case l.TDX != nil:
		return []use{{path.Child("tdx"), "tdx", "WorkloadEncryptionTDX"}}
	case l.SEV != nil || l.SNP != nil:
		return []use{{path, "launchSecurity", "WorkloadEncryptionSEV"}}
	}
	return nil
}

func deviceUses(path *field.Path, spec *v1.VirtualMachineInstanceSpec) []use {
	d := &spec.Domain.Devices
	var found []use
	add := func(used bool, name, gate string) {
		if used {
			found = append(found, use{path.Child(name), name, gate})
		}
	}
	add(d.Video != nil, "video", "VideoConfig")
	add(len(d.PanicDevices) > 0, "panicDevices", "PanicDevices")
	add(d.AutoattachVSOCK != nil && *d.AutoattachVSOCK, "autoattachVSOCK", "VSOCK")
	add(len(d.HostDevices) > 0, "hostDevices", "HostDevices")
	add(d.DownwardMetrics != nil, "downwardMetrics", "DownwardMetrics")
	for i, g := range d.GPUs {
		if g.ClaimRequest != nil {
			found = append(found, use{path.Child("gpus").Index(i).Child("claimName"), "a claimed GPU", "GPUsWithDRA"})
		}
	}
	for i, h := range d.HostDevices {
		if h.ClaimRequest != nil {
			found = append(found, use{path.Child("hostDevices").Index(i).Child("claimName"), "a claimed device", "HostDevicesWithDRA"})
		}
	}
	for i, n := range d.Interfaces {
		if n.PasstBinding != nil {
			found = append(found, use{path.Child("interfaces").Index(i).Child("passtBinding"), "passtBinding", "PasstBinding"})
		}
	}
	return found
}

func diskUses(path *field.Path, spec *v1.VirtualMachineInstanceSpec) []use {
	var found []use
	d := &spec.Domain.Devices
	for i := range d.Disks {
		disk, at := &d.Disks[i], path.Child("domain", "devices", "disks").Index(i)
		if l := disk.LUN; l != nil && l.Reservation {
			found = append(found, use{at.Child("lun", "reservation"), "reservation", "PersistentReservation"})
		}
		if disk.CDRom != nil && !slices.ContainsFunc(spec.Volumes, func(v v1.Volume) bool { return v.Name == disk.Name }) {
			found = append(found, use{at.Child("name"), "a drive without a volume of its name", "DeclarativeHotplugVolumes"})
		}
	}
	shared := map[string]bool{}
	for _, f := range d.Filesystems {
		shared[f.Name] = true
	}
	for i := range spec.Volumes {
		v, at := &spec.Volumes[i], path.Child("volumes").Index(i)
		switch {
		case v.HostDisk != nil:
			found = append(found, use{at.Child("hostDisk"), "hostDisk", "HostDisk"})
		case v.ContainerPath != nil:
			found = append(found, use{at.Child("containerPath"), "containerPath", "ContainerPathVolumes"})
		case v.DownwardMetrics != nil:
			found = append(found, use{at.Child("downwardMetrics"), "downwardMetrics", "DownwardMetrics"})
		case shared[v.Name] && (v.PersistentVolumeClaim != nil || v.DataVolume != nil):
			found = append(found, use{at, "a filesystem on a claim", "EnableVirtioFsStorageVolumes"})
		}
	}
	return found
}

// machineType wants one of the machine types that the cluster offers; none is the cluster's default.
func machineType(at *field.Path, spec *v1.VirtualMachineInstanceSpec, c config.Config) field.ErrorList {
	m := spec.Domain.Machine
	if m == nil || m.Type == "" {
		return nil
	}
	arch := spec.Architecture
	if arch == "" {
		arch = c.Architecture
	}
	patterns := c.EmulatedMachines(arch)
	offered := slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, m.Type)
		return err == nil && ok
	})
	if offered {
		return nil
	}
	return field.ErrorList{field.Invalid(at, short(m.Type),
		fmt.Sprintf("must be one of %s on %s", strings.Join(patterns, ", "), short(arch)))}
}

// podBridge refuses the bridge binding on the Pod's network where the cluster does.
func podBridge(path *field.Path, spec *v1.VirtualMachineInstanceSpec, c config.Config) field.ErrorList {
	if c.BridgeOnPodNetwork {
		return nil
	}
	pod := map[string]bool{}
	for _, n := range spec.Networks {
		pod[n.Name] = n.Pod != nil
	}
	var errs field.ErrorList
	for i, n := range spec.Domain.Devices.Interfaces {
		if n.Bridge != nil && pod[n.Name] {
			errs = append(errs, field.Forbidden(path.Child("domain", "devices", "interfaces").Index(i).Child("bridge"),
				"is not permitted on the Pod's network: use masquerade, or set permitBridgeInterfaceOnPodNetwork of the KubeVirt"))
		}
	}
	return errs
}
