package config

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	v1 "kubevirt.io/api/core/v1"
)

// without are the fields of a KubeVirt's spec that KubeVirt acts on and this version doesn't, each with what there is in
// its place.
var without = []struct{ field, instead string }{
	{"certificateRotateStrategy.selfSigned.caOverlapInterval", "use ca and server"},
	{"certificateRotateStrategy.selfSigned.caRotateInterval", "use ca.duration"},
	{"certificateRotateStrategy.selfSigned.certRotateInterval", "use server.duration"},
	{"configuration.apiConfiguration", ""},
	{"configuration.architectureConfiguration.amd64.ovmfPath", "firmware comes with the launcher's image"},
	{"configuration.architectureConfiguration.arm64.ovmfPath", "firmware comes with the launcher's image"},
	{"configuration.architectureConfiguration.ppc64le", "the architecture is gone from KubeVirt"},
	{"configuration.autoCPULimitNamespaceLabelSelector", ""},
	{"configuration.changedBlockTrackingLabelSelectors", ""},
	{"configuration.commonInstancetypesDeployment", "apply bundles/instancetypes"},
	{"configuration.controllerConfiguration", ""},
	{"configuration.developerConfiguration.clusterProfiler", ""},
	{"configuration.developerConfiguration.diskVerification", ""},
	{"configuration.developerConfiguration.logVerbosity", ""},
	{"configuration.developerConfiguration.minimumClusterTSCFrequency", ""},
	{"configuration.developerConfiguration.minimumReservePVCBytes", ""},
	{"configuration.developerConfiguration.pvcTolerateLessSpaceUpToPercent", ""},
	{"configuration.handlerConfiguration", ""},
	{"configuration.hypervisors", "there is KVM"},
	{"configuration.instancetype.referencePolicy", "every VM is treated as reference"},
	{"configuration.ksmConfiguration", ""},
	{"configuration.liveUpdateConfiguration", ""},
	{"configuration.mediatedDevicesConfiguration", "make them on the node"},
	{"configuration.migrations", ""},
	{"configuration.minCPUModel", ""},
	{"configuration.network.binding", "interfaces have bridge and masquerade"},
	{"configuration.network.permitSlirpInterface", "slirp is gone from KubeVirt"},
	{"configuration.ovmfPath", "firmware comes with the launcher's image"},
	{"configuration.roleAggregationStrategy", "patch the labels of the ClusterRoles where they are installed"},
	{"configuration.selinuxLauncherType", ""},
	{"configuration.supportContainerResources", "a launcher has one container"},
	{"configuration.supportedGuestAgentVersions", "every version is"},
	{"configuration.tlsConfiguration", "servers take TLS 1.3 and what is safe of 1.2"},
	{"configuration.virtTemplateDeployment", ""},
	{"configuration.webhookConfiguration", ""},
	{"customizeComponents", "patch the install manifests"},
	{"monitorAccount", ""},
	{"monitorNamespace", ""},
	{"productComponent", ""},
	{"productName", ""},
	{"productVersion", ""},
	{"serviceMonitorNamespace", ""},
	{"synchronizationPort", ""},
	{"workloadUpdateStrategy", ""},
}

// Gates are the feature gates that something here asks for.
var Gates = []string{
	"AlignCPUs", "CPUManager", "ContainerPathVolumes", "DecentralizedLiveMigration", "DeclarativeHotplugVolumes", "DownwardMetrics", "EnableVirtioFsStorageVolumes",
	"ExperimentalIgnitionSupport", "GPUsWithDRA", "HostDevices", "HostDevicesWithDRA", "HostDisk", "HypervStrictCheck", "ImageVolume",
	"IncrementalBackup", "MigrationPriorityQueue", "OptOutRoleAggregation", "PanicDevices", "PasstBinding", "PersistentReservation",
	"RebootPolicy", "ReservedOverheadMemlock", "SecureExecution", "Sidecar", "Snapshot", "Template", "UtilityVolumes", "VMExport", "VSOCK",
	"VideoConfig", "WorkloadEncryptionSEV", "WorkloadEncryptionTDX",
}

// Ignored returns which fields of a KubeVirt say something that this version doesn't do, each with its path and what
// there is in its place. Nothing that is accepted is passed over in silence.
func Ignored(kv *v1.KubeVirt) []string {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&kv.Spec)
	if err != nil {
		return nil // it was read from JSON
	}
	var out []string
	for _, f := range without {
		value, found, _ := unstructured.NestedFieldNoCopy(tree, strings.Split(f.field, ".")...)
		if !found || empty(value) {
			continue
		}
		line := "spec." + f.field + " has no effect in this version"
		if f.instead != "" {
			line += ": " + f.instead
		}
		out = append(out, line)
	}
	d := kv.Spec.Configuration.DeveloperConfiguration
	if d == nil {
		return out
	}
	for list, gates := range [][]string{d.FeatureGates, d.DisabledFeatureGates} {
		for i, gate := range gates {
			if !slices.Contains(Gates, gate) {
				out = append(out, fmt.Sprintf("spec.configuration.developerConfiguration.%s[%d] has no effect in this version: %.64q stands for what is always so, or isn't there",
					[]string{"featureGates", "disabledFeatureGates"}[list], i, gate))
			}
		}
	}
	return out
}

// empty tells what is the same as a field that isn't there: what the API's types write for one.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		for _, inner := range v {
			if !empty(inner) {
				return false
			}
		}
		return true
	}
	return false
}
