package validate_test

import "testing"

// What components may do to a machine that runs.
func TestAMachineThatRuns(t *testing.T) {
	const kind = "kubevirt.io/VirtualMachineInstance"
	vmi := func(disks, volumes, more string) string {
		return `{spec: {domain: {memory: {guest: 1Gi}, devices: {disks: [{name: root, disk: {bus: virtio}}` + disks + `]}}, volumes: [{name: root, containerDisk: {image: i}}` + volumes + `]` + more + `}}`
	}
	const (
		data  = `, {name: data, persistentVolumeClaim: {claimName: c, hotpluggable: true}}`
		scsi  = `, {name: data, disk: {bus: scsi}}`
		disks = "spec.domain.devices.disks"
		lent  = `, utilityVolumes: [{name: u, claimName: c}]`
	)
	plain := vmi("", "", "")
	objects{
		"a claim comes":    {kind: kind, object: vmi(scsi, data, ""), old: plain},
		"a claim goes":     {kind: kind, object: plain, old: vmi(scsi, data, "")},
		"a disk stays":     {kind: kind, object: vmi("", data, ""), old: vmi(scsi, data, ""), want: []string{disks + " disk data must stay"}},
		"a claim changes":  {kind: kind, object: vmi(scsi, `, {name: data, persistentVolumeClaim: {claimName: d, hotpluggable: true}}`, ""), old: vmi(scsi, data, ""), want: []string{"spec.volumes[1] must stay as"}},
		"a claim moves":    {kind: kind, object: `{status: {migratedVolumes: [{volumeName: data}]}, ` + vmi(scsi, `, {name: data, persistentVolumeClaim: {claimName: d, hotpluggable: true}}`, "")[1:], old: vmi(scsi, data, "")},
		"not pluggable":    {kind: kind, object: vmi(scsi, `, {name: data, persistentVolumeClaim: {claimName: c}}`, ""), old: plain, want: []string{"spec.volumes[1] hotpluggable: true"}},
		"a map comes":      {kind: kind, object: vmi(scsi, `, {name: data, configMap: {name: c}}`, ""), old: plain, want: []string{"spec.volumes[1] hotpluggable: true"}},
		"no disk":          {kind: kind, object: vmi("", data, ""), old: plain, want: []string{disks + " disk for volume data"}},
		"sata":             {kind: kind, object: vmi(`, {name: data, disk: {bus: sata}}`, data, ""), old: plain, want: []string{disks + `[1].disk.bus "sata": supported values`}},
		"a drive":          {kind: kind, object: vmi(`, {name: data, cdrom: {bus: sata}}`, data, ""), old: plain, want: []string{disks + "[1] a disk or a lun"}},
		"the root goes":    {kind: kind, object: vmi(scsi, data, ""), old: vmi(scsi+`, {name: b, disk: {bus: virtio}}`, data+`, {name: b, emptyDisk: {capacity: 1Mi}}`, ""), want: []string{"spec.volumes volume b is the machine's", disks + " disk b must stay"}},
		"the root changes": {kind: kind, object: vmi(`, {name: b, disk: {bus: sata}}`, `, {name: b, emptyDisk: {capacity: 2Mi}}`, ""), old: vmi(`, {name: b, disk: {bus: virtio}}`, `, {name: b, emptyDisk: {capacity: 1Mi}}`, ""), want: []string{"spec.volumes[1] must stay", disks + "[1] must stay"}},
		"lent":             {kind: kind, gates: "UtilityVolumes", object: vmi("", "", lent), old: plain},
		"not lent":         {kind: kind, object: vmi("", "", lent), old: plain, want: []string{"spec.utilityVolumes feature gate UtilityVolumes"}},
		"lent twice":       {kind: kind, gates: "UtilityVolumes", object: vmi("", "", `, utilityVolumes: [{name: u, claimName: c}, {name: u, claimName: d}, {name: root, claimName: ""}]`), old: plain, want: []string{"spec.utilityVolumes[1].name Duplicate", "spec.utilityVolumes[2].claimName Required", "spec.utilityVolumes[2].name Duplicate"}},
		"lent another":     {kind: kind, gates: "UtilityVolumes", object: vmi("", "", `, utilityVolumes: [{name: u, claimName: d}]`), old: vmi("", "", lent), want: []string{"spec.utilityVolumes[0] must stay"}},
		"more sockets":     {kind: kind, object: `{spec: {domain: {cpu: {maxSockets: 2}, memory: {guest: 1Gi, maxGuest: 4Gi}, devices: {}}}}`, old: `{spec: {domain: {cpu: {maxSockets: 1}, memory: {guest: 1Gi, maxGuest: 2Gi}, devices: {}}}}`, want: []string{"spec.domain.cpu.maxSockets must stay", "spec.domain.memory.maxGuest must stay"}},
	}.run(t)
}
