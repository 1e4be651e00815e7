package validate_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/validate"
)

// with is the configuration with gates on, and with hostDisks in /d.
func with(gates ...string) config.Config {
	kv := &v1.KubeVirt{}
	kv.Annotations = map[string]string{config.HostDiskAnnotation: "/d"}
	kv.Spec.Configuration.DeveloperConfiguration = &v1.DeveloperConfiguration{FeatureGates: gates}
	return config.From(kv)
}

// objects are cases by name: a kind as group/kind, the object, what it was (empty: new), gates, and the errors
// wanted, each as path, a space, and a part of its message. A part of a warning follows "warning ".
type objects map[string]struct {
	kind, object, old, gates string
	want                     []string
}

func (objects objects) run(t *testing.T) {
	t.Helper()
	for name, tc := range objects {
		t.Run(name, func(t *testing.T) {
			group, kind, _ := strings.Cut(tc.kind, "/")
			got, err := validate.Object(schema.GroupKind{Group: group, Kind: kind}, asJSON(t, tc.object), asJSON(t, tc.old), with(strings.Fields(tc.gates)...))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, e := range got.Errors {
				lines = append(lines, e.Field+" "+e.ErrorBody())
			}
			for _, w := range got.Warnings {
				if strings.Contains(w, " is stored and has no effect") {
					continue // see TestKindsThatNobodyActsOnAreNamed
				}
				lines = append(lines, "warning "+w)
			}
			if len(lines) != len(tc.want) {
				t.Fatalf("got %q\nwant %q", lines, tc.want)
			}
			for i, line := range lines {
				path, part, _ := strings.Cut(tc.want[i], " ")
				if at, rest, _ := strings.Cut(line, " "); at != path || !strings.Contains(rest, part) {
					t.Errorf("got %q\nwant %q", line, tc.want[i])
				}
			}
		})
	}
}

func asJSON(t *testing.T, text string) []byte {
	t.Helper()
	if text == "" {
		return nil
	}
	made, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const small = `domain: {memory: {guest: 128Mi}, devices: {}}`

func TestOwners(t *testing.T) {
	const (
		set   = "kubevirt.io/VirtualMachineInstanceReplicaSet"
		pools = "pool.kubevirt.io/VirtualMachinePool"
	)
	pool := func(selector, more string) string {
		return `{spec: {selector: {matchLabels: {a: ` + selector + `}}, virtualMachineTemplate: {metadata: {labels: {a: b}}, spec: {runStrategy: Always, template: {spec: {` + small + `}}}}` + more + `}}`
	}
	objects{
		"set":            {kind: set, object: `{spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {` + small + `}}}}`},
		"set of others":  {kind: set, object: `{spec: {selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: b}}, spec: {` + small + `}}}}`, want: []string{"spec.selector must match the labels of the template, a=b"}},
		"set of nothing": {kind: set, object: `{spec: {}}`, want: []string{"spec.template Required"}},
		"pool":           {kind: pools, object: pool("b", ", maxUnavailable: 50%")},
		"wrong machine": {kind: pools, object: strings.Replace(pool("b", ""), "128Mi", "0", 1),
			want: []string{"spec.virtualMachineTemplate.spec.template.spec.domain.memory.guest more than 0"}},
		"moved pool":   {kind: pools, object: strings.ReplaceAll(pool("c", ""), "a: b", "a: c"), old: pool("b", ""), want: []string{"spec.selector must stay a=b"}},
		"odd pool":     {kind: pools, object: pool("b", ", maxUnavailable: 0"), want: []string{"spec.maxUnavailable from 1"}},
		"too much":     {kind: pools, object: pool("b", ", maxUnavailable: 101%"), want: []string{"spec.maxUnavailable 100%"}},
		"two ways":     {kind: pools, object: pool("b", ", updateStrategy: {unmanaged: {}, proactive: {}}"), want: []string{"spec.updateStrategy unmanaged, proactive"}},
		"preset":       {kind: "kubevirt.io/VirtualMachineInstancePreset", object: `{spec: {selector: {matchLabels: {a: b}}, domain: {devices: {}}}}`, want: []string{"warning deprecated"}},
		"empty preset": {kind: "kubevirt.io/VirtualMachineInstancePreset", object: `{spec: {}}`, want: []string{"spec.selector Required", "spec.domain Required", "warning deprecated"}},
	}.run(t)
}

func TestStoredMachines(t *testing.T) {
	const (
		snap, back  = "snapshot.kubevirt.io/VirtualMachineSnapshot", "snapshot.kubevirt.io/VirtualMachineRestore"
		exp, cloned = "export.kubevirt.io/VirtualMachineExport", "clone.kubevirt.io/VirtualMachineClone"
		web         = `{apiGroup: kubevirt.io, kind: VirtualMachine, name: web}`
	)
	restore := func(more string) string {
		return `{spec: {target: ` + web + `, virtualMachineSnapshotName: s` + more + `}}`
	}
	clone := func(more string) string { return `{spec: {source: ` + web + more + `}}` }
	objects{
		"snapshot":     {kind: snap, gates: "Snapshot", object: `{spec: {source: ` + web + `}}`},
		"gate":         {kind: snap, object: `{spec: {source: ` + web + `}}`, want: []string{"spec feature gate Snapshot"}},
		"no group":     {kind: snap, gates: "Snapshot", object: `{spec: {source: {kind: VirtualMachine, name: web}}}`, want: []string{"spec.source.apiGroup Not found"}},
		"other kind":   {kind: snap, gates: "Snapshot", object: `{spec: {source: {apiGroup: kubevirt.io, kind: Pod, name: web}}}`, want: []string{`spec.source.kind "Pod"`}},
		"changed":      {kind: snap, object: `{spec: {source: ` + web + `, deletionPolicy: retain}}`, old: `{spec: {source: ` + web + `}}`, want: []string{"spec must stay"}},
		"restore":      {kind: back, gates: "Snapshot", object: restore(`, patches: ['{"op":"remove","path":"/spec/running"}']`)},
		"far patch":    {kind: back, gates: "Snapshot", object: restore(`, patches: ['{"op":"remove","path":"/status/x"}']`), want: []string{`spec.patches[0] "/status/x"`}},
		"no patch":     {kind: back, gates: "Snapshot", object: restore(`, patches: ['x']`), want: []string{"spec.patches[0] JSON patch"}},
		"override":     {kind: back, gates: "Snapshot", object: restore(`, volumeRestoreOverrides: [{}]`), want: []string{"spec.volumeRestoreOverrides[0].volumeName Required", "spec.volumeRestoreOverrides[0] restoreName"}},
		"odd policy":   {kind: back, gates: "Snapshot", object: restore(`, volumeRestorePolicy: Burn`), want: []string{`spec.volumeRestorePolicy "Burn"`}},
		"export":       {kind: exp, gates: "VMExport", object: `{spec: {source: {apiGroup: "", kind: PersistentVolumeClaim, name: c}}}`},
		"export a Pod": {kind: exp, gates: "VMExport", object: `{spec: {source: {apiGroup: "", kind: Pod, name: c}}}`, want: []string{`spec.source.kind "Pod"`}},
		"clone":        {kind: cloned, gates: "Snapshot", object: clone(`, target: {name: web-2}, labelFilters: ["*", "!x/*"], newMacAddresses: {net: ""}`)},
		"of itself":    {kind: cloned, gates: "Snapshot", object: clone(`, target: {kind: VirtualMachine, name: web}`), want: []string{`spec.target.name "web": must not be the source`}},
		"odd filters":  {kind: cloned, gates: "Snapshot", object: clone(`, labelFilters: ["!", "a!b", "*a"]`), want: []string{"spec.labelFilters[0] !", "spec.labelFilters[1] !", "spec.labelFilters[2] *"}},
		"odd MAC":      {kind: cloned, gates: "Snapshot", object: clone(`, newMacAddresses: {net: "02:zz"}`), want: []string{`spec.newMacAddresses[net] "02:zz"`}},
		"no source":    {kind: cloned, gates: "Snapshot", object: `{spec: {}}`, want: []string{"spec.source Required"}},
		"backup":       {kind: "backup.kubevirt.io/VirtualMachineBackup", gates: "IncrementalBackup", object: `{spec: {source: ` + web + `, mode: Pull}}`, want: []string{"spec.pvcName Required", "spec.tokenSecretRef Required"}},
		"tracker":      {kind: "backup.kubevirt.io/VirtualMachineBackupTracker", gates: "IncrementalBackup", object: `{spec: {source: {kind: VirtualMachine, name: w}}}`, want: []string{"spec.source.apiGroup Not found"}},
	}.run(t)
}

func TestClusterObjects(t *testing.T) {
	const (
		move = "kubevirt.io/VirtualMachineInstanceMigration"
		size = "instancetype.kubevirt.io/VirtualMachineClusterInstancetype"
		pref = "instancetype.kubevirt.io/VirtualMachinePreference"
		kv   = "kubevirt.io/KubeVirt"
	)
	objects{
		"migration":     {kind: move, object: `{spec: {vmiName: web}}`},
		"of nothing":    {kind: move, object: `{spec: {}}`, want: []string{"spec.vmiName Required"}},
		"moved on":      {kind: move, object: `{spec: {vmiName: db}}`, old: `{spec: {vmiName: web}}`, want: []string{"spec update of Migration object's spec is restricted"}},
		"unlabelled":    {kind: move, object: `{spec: {vmiName: web}}`, old: `{metadata: {labels: {kubevirt.io/vmi-name: web}}, spec: {vmiName: web}}`, want: []string{"metadata.labels[kubevirt.io/vmi-name] must stay"}},
		"far away":      {kind: move, object: `{spec: {vmiName: web, sendTo: {migrationID: a, connectURL: u}}}`, want: []string{"spec DecentralizedLiveMigration"}},
		"policy":        {kind: "migrations.kubevirt.io/MigrationPolicy", object: `{spec: {bandwidthPerMigration: -1, completionTimeoutPerGiB: -1}}`, want: []string{"spec.completionTimeoutPerGiB 0 or more", "spec.bandwidthPerMigration 0 or more"}},
		"size":          {kind: size, object: `{spec: {cpu: {guest: 1}, memory: {guest: 1Gi, overcommitPercent: 15}}}`},
		"no size":       {kind: size, object: `{spec: {cpu: {guest: 0}, memory: {guest: "2"}}}`, want: []string{"spec.memory.guest give a unit", "spec.cpu.guest at least 1"}},
		"overcommit":    {kind: size, object: `{spec: {cpu: {guest: 1}, memory: {guest: 1Gi, overcommitPercent: 15, hugepages: {pageSize: 2Mi}}}}`, want: []string{"spec.memory.overcommitPercent hugepages"}},
		"preference":    {kind: pref, object: `{spec: {cpu: {preferredCPUTopology: preferCores}}}`, want: []string{"warning please use cores instead"}},
		"odd zone":      {kind: pref, object: `{spec: {clock: {preferredClockOffset: {timezone: Moon/Tranquility}}}}`, want: []string{`spec.clock.preferredClockOffset.timezone "Moon/Tranquility": must be the name of a time zone`}},
		"odd topology":  {kind: pref, object: `{spec: {cpu: {preferredCPUTopology: moon}}}`, want: []string{`spec.cpu.preferredCPUTopology "moon"`}},
		"odd spread":    {kind: pref, object: `{spec: {cpu: {spreadOptions: {across: CoresThreads, ratio: 3}}}}`, want: []string{"spec.cpu.spreadOptions.ratio must be 2"}},
		"configuration": {kind: kv, object: `{spec: {configuration: {additionalGuestMemoryOverheadRatio: "1.5"}}}`},
		"a profile":     {kind: kv, object: seccomp("localhostProfile: profiles/virtstack.json")},
		"no profile":    {kind: kv, object: seccomp(""), want: []string{"spec.configuration.seccompConfiguration.virtualMachineInstanceProfile.customProfile must have one of"}},
		"two profiles":  {kind: kv, object: seccomp("localhostProfile: a, runtimeDefaultProfile: true"), want: []string{"spec.configuration.seccompConfiguration.virtualMachineInstanceProfile.customProfile only one"}},
		"odd profile":   {kind: kv, object: seccomp("localhostProfile: ../../etc/passwd"), want: []string{`spec.configuration.seccompConfiguration.virtualMachineInstanceProfile.customProfile.localhostProfile "../../etc/passwd"`}},
		"odd words": {kind: kv, object: `{spec: {imagePullPolicy: Sometimes, uninstallStrategy: RemoveWorkload, workloadUpdateStrategy: {workloadUpdateMethods: [Evict, Shutdown]}, configuration: {imagePullPolicy: never}}}`,
			want: []string{`spec.imagePullPolicy "Sometimes": supported values: "Always", "IfNotPresent", "Never"`, `spec.configuration.imagePullPolicy "never"`,
				`spec.uninstallStrategy "RemoveWorkload": supported values: "RemoveWorkloads", "BlockUninstallIfWorkloadsExist"`,
				`spec.workloadUpdateStrategy.workloadUpdateMethods[1] "Shutdown": supported values: "LiveMigrate", "Evict"`, "warning spec.workloadUpdateStrategy has no effect"}},
		"no effect": {kind: kv, object: `{spec: {workloadUpdateStrategy: {workloadUpdateMethods: [Evict]}, configuration: {developerConfiguration: {featureGates: [Snapshot, LiveMigration]}}}}`,
			want: []string{"warning spec.workloadUpdateStrategy has no effect", `warning spec.configuration.developerConfiguration.featureGates[1] has no effect in this version: "LiveMigration"`}},
		"no template gate": {kind: kv, object: `{spec: {configuration: {virtTemplateDeployment: {enabled: true}, roleAggregationStrategy: Manual}}}`,
			want: []string{"spec.configuration.virtTemplateDeployment feature gate Template", "spec.configuration.roleAggregationStrategy feature gate OptOutRoleAggregation",
				"warning spec.configuration.roleAggregationStrategy", "warning spec.configuration.virtTemplateDeployment"}},
		"far components": {kind: kv, object: `{spec: {infra: {nodePlacement: {tolerations: [{operator: Maybe}]}}, workloads: {nodePlacement: {nodeSelector: {"a b": c}}}}}`,
			want: []string{"spec.infra.nodePlacement.tolerations[0].operator Maybe", "spec.infra.nodePlacement.tolerations[0].key name a taint", `spec.workloads.nodePlacement.nodeSelector "a b"`}},
		"wrong configuration": {kind: kv, object: `{spec: {infra: {replicas: 0}, customizeComponents: {patches: [{resourceName: a, resourceType: b, patch: "{", type: json}]},
			configuration: {additionalGuestMemoryOverheadRatio: NaN, tlsConfiguration: {minTLSVersion: VersionTLS13, ciphers: [x]}, developerConfiguration: {featureGates: [A], disabledFeatureGates: [A]}},
			certificateRotateStrategy: {selfSigned: {ca: {duration: 1h, renewBefore: 2h}, server: {duration: 3h}}}}}`,
			want: []string{"spec.customizeComponents.patches[0].patch JSON", "spec.infra.replicas at least 1", "spec.configuration.additionalGuestMemoryOverheadRatio 1.25",
				"spec.configuration.developerConfiguration.disabledFeatureGates[0] featureGates too", "spec.configuration.tlsConfiguration.ciphers VersionTLS12",
				"spec.certificateRotateStrategy.selfSigned.ca.renewBefore at most", "spec.certificateRotateStrategy.selfSigned.server.duration authority",
				"warning spec.configuration.tlsConfiguration", "warning spec.customizeComponents", "warning featureGates[0]", "warning disabledFeatureGates[0]"}},
	}.run(t)
}

// seccomp is a KubeVirt with a profile for launchers.
func seccomp(profile string) string {
	return `{spec: {configuration: {seccompConfiguration: {virtualMachineInstanceProfile: {customProfile: {` + profile + `}}}}}}`
}

// vmWith is a machine with more in its VM and in its instance's spec.
func vmWith(vm, spec string) string {
	return `{spec: {runStrategy: Halted` + vm + `, template: {spec: {` + spec + `}}}}`
}

func TestWhatTheClusterPermits(t *testing.T) {
	const kind, spec = "kubevirt.io/VirtualMachine", "spec.template.spec."
	disk := `domain: {memory: {guest: 128Mi}, devices: {}}, volumes: [{name: d, hostDisk: {path: /d/x.img, type: Disk}}]`
	device := func(d string) string { return vmWith("", `domain: {memory: {guest: 128Mi}, devices: {`+d+`}}`) }
	objects{
		"gate on":    {kind: kind, object: vmWith("", disk), gates: "HostDisk"},
		"closed":     {kind: kind, object: vmWith("", strings.Replace(disk, "/d/", "/d/e/", 1)), gates: "HostDisk", want: []string{spec + `volumes[0].hostDisk.path "/d/e/x.img": must be a file in a directory that annotation virtstack.io/host-disk-directories`}},
		"gate off":   {kind: kind, object: vmWith("", disk), want: []string{spec + "volumes[0].hostDisk feature gate HostDisk"}},
		"video":      {kind: kind, object: device("video: {type: vga}"), want: []string{spec + "domain.devices.video VideoConfig"}},
		"vsock":      {kind: kind, object: device("autoattachVSOCK: true"), want: []string{spec + "domain.devices.autoattachVSOCK VSOCK"}},
		"devices":    {kind: kind, object: device("hostDevices: [{name: a, deviceName: b/c}]"), want: []string{spec + "domain.devices.hostDevices HostDevices"}},
		"gpus":       {kind: kind, object: device("gpus: [{name: a, deviceName: b/c}]")},
		"machine":    {kind: kind, object: vmWith("", `domain: {memory: {guest: 1Gi}, machine: {type: pc-q35-9.2}, devices: {}}`)},
		"isapc":      {kind: kind, object: vmWith("", `domain: {memory: {guest: 1Gi}, machine: {type: isapc}, devices: {}}`), want: []string{spec + `domain.machine.type "isapc": must be one of q35*, pc-q35*`}},
		"encryption": {kind: kind, object: vmWith("", `domain: {memory: {guest: 1Gi}, firmware: {bootloader: {efi: {secureBoot: false}}}, launchSecurity: {snp: {}}, devices: {}}`), want: []string{spec + "domain.launchSecurity WorkloadEncryptionSEV"}},
		"sidecar": {kind: "kubevirt.io/VirtualMachineInstance", object: `{metadata: {annotations: {hooks.kubevirt.io/hookSidecars: "[]"}}, spec: {` + small + `}}`,
			want: []string{"metadata.annotations[hooks.kubevirt.io/hookSidecars] Sidecar"}},
	}.run(t)
}

func TestVirtualMachines(t *testing.T) {
	const kind = "kubevirt.io/VirtualMachine"
	empty := `domain: {devices: {}}`
	saved := func(status, strategy string) string {
		return `{status: {` + status + `}, spec: {runStrategy: ` + strategy + `, template: {spec: {` + small + `}}}}`
	}
	dv := func(spec string) string {
		return vmWith(`, dataVolumeTemplates: [{metadata: {name: d}, spec: {`+spec+`}}]`, small+`, volumes: [{name: d, dataVolume: {name: d}}]`)
	}
	objects{
		"instancetype":    {kind: kind, object: vmWith(`, instancetype: {kind: VirtualMachineInstancetype, name: small}`, empty)},
		"plural":          {kind: kind, object: vmWith(`, instancetype: {kind: virtualmachineinstancetypes, name: small}`, empty)},
		"wrong spelling":  {kind: kind, object: vmWith(`, instancetype: {kind: VirtualMachineType, name: small}`, empty), want: []string{`spec.instancetype.kind "VirtualMachineType"`}},
		"nameless":        {kind: kind, object: vmWith(`, instancetype: {}, preference: {}`, empty), want: []string{"spec.instancetype.name Not found", "spec.preference.name Not found"}},
		"inferred":        {kind: kind, object: vmWith(`, instancetype: {inferFromVolume: d, name: x}`, empty), want: []string{"spec.instancetype.name where inferFromVolume is given", "spec.instancetype.inferFromVolume one of the machine's volumes"}},
		"said twice":      {kind: kind, object: vmWith(`, instancetype: {name: x}`, `domain: {cpu: {cores: 2}, memory: {guest: 1Gi}, devices: {}}`), want: []string{"spec.template.spec.domain.cpu.cores conflicts with selected instance type", "spec.template.spec.domain.memory.guest conflicts"}},
		"data volume":     {kind: kind, object: dv("storage: {}, source: {blank: {}}")},
		"from a data ref": {kind: kind, object: dv("pvc: {dataSourceRef: {apiGroup: a, kind: b, name: c}}")},
		"of nothing":      {kind: kind, object: dv(""), want: []string{"spec.dataVolumeTemplates[0].spec pvc, storage", "spec.dataVolumeTemplates[0].spec source, sourceRef"}},
		"two sources":     {kind: kind, object: dv("storage: {}, source: {blank: {}, upload: {}}"), want: []string{"spec.dataVolumeTemplates[0].spec.source only one"}},
		"unused":          {kind: kind, object: vmWith(`, dataVolumeTemplates: [{metadata: {name: d}, spec: {storage: {}, source: {blank: {}}}}]`, small), want: []string{"spec.dataVolumeTemplates[0].metadata.name must be used"}},
		"volumes":         {kind: kind, object: vmWith(", updateVolumesStrategy: Migration", small), want: []string{"warning spec.updateVolumesStrategy has no effect"}},
		"same volumes":    {kind: kind, object: vmWith(", updateVolumesStrategy: Replacement", small)},
		"odd volumes":     {kind: kind, object: vmWith(", updateVolumesStrategy: Replace", small), want: []string{`spec.updateVolumesStrategy "Replace": supported values: "Replacement", "Migration"`}},
		"odd inference":   {kind: kind, object: vmWith(`, instancetype: {inferFromVolume: d, inferFromVolumeFailurePolicy: Shrug}`, empty+`, volumes: [{name: d, containerDisk: {image: x}}]`), want: []string{`spec.instancetype.inferFromVolumeFailurePolicy "Shrug"`}},
		"renamed":         {kind: kind, object: vmWith(`, instancetype: {name: b, revisionName: r}`, empty), old: vmWith(`, instancetype: {name: a, revisionName: r}`, empty), want: []string{`spec.instancetype.revisionName "r": is a revision of "a"`}},
		"revised":         {kind: kind, object: vmWith(`, preference: {name: b, revisionName: s}`, small), old: vmWith(`, preference: {name: a, revisionName: r}`, small)},
		"while restored":  {kind: kind, object: saved("restoreInProgress: r", "Always"), old: saved("restoreInProgress: r", "Halted"), want: []string{"spec.runStrategy restore r"}},
		"while saved":     {kind: kind, object: saved("snapshotInProgress: s", "Halted"), old: saved("snapshotInProgress: s", "Always"), want: []string{"spec.runStrategy snapshot s"}},
	}.run(t)
}
