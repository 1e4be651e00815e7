package podspec

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/machine/config"
)

// Feature gates without which no VM reaches a node's files, or is told what its node is doing.
const (
	hostDiskGate        = "HostDisk"
	downwardMetricsGate = "DownwardMetrics"
)

func supportedVolumes(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for i, v := range vmi.Spec.Volumes {
		field := fmt.Sprintf("spec.volumes[%d]", i)
		if len(validation.IsDNS1123Subdomain(v.Name)) > 0 || len(v.Name) > validation.DNS1123LabelMaxLength {
			return &UnsupportedError{field + ".name", fmt.Sprintf("%q must be lower-case letters, digits, dots and dashes, at most 63", v.Name)}
		}
		if v.MemoryDump != nil && v.MemoryDump.ReadOnly {
			return &UnsupportedError{field + ".memoryDump.readOnly", "true: must be left out: dumps are written there"}
		}
		kind := source(v)
		if want, ok := unsupportedSources[kind]; ok {
			return &UnsupportedError{field + "." + kind, want}
		}
	}
	return nil
}

// supportedCredentials wants Secrets whose names can be those of directories.
func supportedCredentials(vmi *v1.VirtualMachineInstance) *UnsupportedError {
	for i, c := range vmi.Spec.AccessCredentials {
		if name := credentialSecret(c); len(validation.IsDNS1123Subdomain(name)) > 0 {
			return &UnsupportedError{fmt.Sprintf("spec.accessCredentials[%d]", i), fmt.Sprintf("source.secret.secretName %q must be the name of a Secret", name)}
		}
	}
	return nil
}

// unsupportedSources are the kinds of volumes that the launcher doesn't have, each with what to do instead.
var unsupportedSources = map[string]string{
	"":              "must have a source, such as containerDisk or persistentVolumeClaim",
	"containerPath": "not supported yet: use a configMap, secret or persistentVolumeClaim",
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

// supportedMetrics lets a VMI be told of its node where the administrator has said so.
func supportedMetrics(vmi *v1.VirtualMachineInstance, cfg config.Config) error {
	for i, v := range vmi.Spec.Volumes {
		if v.DownwardMetrics != nil && !cfg.Enabled(downwardMetricsGate) {
			return &UnsupportedError{fmt.Sprintf("spec.volumes[%d].downwardMetrics", i), "needs the feature gate " + downwardMetricsGate}
		}
	}
	return nil
}

// supportedHostDisks lets a VMI reach those directories of a node alone that the administrator has named.
func supportedHostDisks(vmi *v1.VirtualMachineInstance, cfg config.Config) error {
	for i, v := range vmi.Spec.Volumes {
		if v.HostDisk == nil {
			continue
		}
		field := fmt.Sprintf("spec.volumes[%d].hostDisk", i)
		if !cfg.Enabled(hostDiskGate) {
			return &UnsupportedError{field, "needs the feature gate " + hostDiskGate}
		}
		p := v.HostDisk.Path
		if !path.IsAbs(p) || p != path.Clean(p) || p == "/" {
			return &UnsupportedError{field + ".path", fmt.Sprintf("%q must be the absolute path of a file, such as /data/disks/web.img", p)}
		}
		if !slices.Contains(cfg.HostDiskDirs, path.Dir(p)) {
			return &UnsupportedError{field + ".path", fmt.Sprintf("%q: the administrator must name the directory %s in annotation %s of the KubeVirt", p, path.Dir(p), config.HostDiskAnnotation)}
		}
	}
	return nil
}
