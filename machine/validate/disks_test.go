package validate_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"virtstack.io/virtstack/machine/validate"
)

// root is the volume and disk that a case with others keeps.
const root = `{name: root, containerDisk: {image: i}}`

func TestBootOrder(t *testing.T) {
	tables{
		"gaps": {`{domain: {devices: {disks: [{name: root, bootOrder: 7}], interfaces: [{name: net, bootOrder: 3, masquerade: {}}]}}}`, nil},
		"taken": {`{domain: {devices: {disks: [{name: root, bootOrder: 1}], interfaces: [{name: net, bootOrder: 1, masquerade: {}}]}}}`,
			[]string{`domain.devices.interfaces[0].bootOrder 1: must be unique: disk "root" has 1 too`}},
		"two disks": {`{volumes: [` + root + `, {name: b, emptyDisk: {capacity: 1Gi}}], domain: {devices: {disks: [{name: root, bootOrder: 1}, {name: b, bootOrder: 1}]}}}`,
			[]string{`domain.devices.disks[1].bootOrder disk "root"`}},
		"huge": {`{domain: {devices: {interfaces: [{name: net, bootOrder: 4294967295, masquerade: {}}]}}}`,
			[]string{"domain.devices.interfaces[0].bootOrder 4294967295: must be at most 2147483647"}},
		"zero": {`{domain: {devices: {interfaces: [{name: net, bootOrder: 0, masquerade: {}}]}}}`,
			[]string{"domain.devices.interfaces[0].bootOrder 0: must be at least 1"}},
	}.run(t)
}

func TestDisksAndVolumes(t *testing.T) {
	tables{
		"volume alone": {`{volumes: [` + root + `, {name: scratch, emptyDisk: {capacity: 8Mi}}]}`, nil},
		"disk alone": {`{domain: {devices: {disks: [{name: root}, {name: ghost}]}}}`,
			[]string{`domain.devices.disks[1].name "ghost": must be the name of one of the machine's volumes`}},
		"empty drive": {`{domain: {devices: {disks: [{name: root}, {name: drive, cdrom: {bus: sata}}]}}}`,
			nil},
		"filesystem of no kind": {`{domain: {devices: {filesystems: [{name: fs}]}}, volumes: [{name: root, containerDisk: {image: i}}, {name: fs, secret: {secretName: s}}]}`, []string{"domain.devices.filesystems[0].virtiofs Required"}},
		"filesystem alone":      {`{domain: {devices: {filesystems: [{name: fs, virtiofs: {}}]}}}`, []string{"domain.devices.filesystems[0].name volumes"}},
		"same disk":             {`{domain: {devices: {disks: [{name: root}, {name: root}]}}}`, []string{"domain.devices.disks[1].name disks[0].name has it too"}},
		"same volume":           {`{volumes: [` + root + `, ` + root + `]}`, []string{"volumes[1].name volumes[0].name has it too"}},
		"no name":               {`{volumes: [` + root + `, {emptyDisk: {capacity: 1Gi}}]}`, []string{"volumes[1].name Required"}},
		"long name": {`{volumes: [` + root + `, {name: ` + strings.Repeat("x", 300) + `, emptyDisk: {capacity: 1Gi}}]}`,
			[]string{"volumes[1].name at most 63 characters"}},
		"path for a name": {`{volumes: [` + root + `, {name: "..", emptyDisk: {capacity: 1Gi}}]}`, []string{`volumes[1].name "..": must be a DNS label`}},
		"no source":       {`{volumes: [` + root + `, {name: b}]}`, []string{"volumes[1] hostDisk, persistentVolumeClaim"}},
		"two sources": {`{volumes: [{name: root, containerDisk: {image: i}, emptyDisk: {capacity: 1Gi}}]}`,
			[]string{`volumes[0] "containerDisk, emptyDisk": must have only one of these, not 2`}},
	}.run(t)
}

func TestDiskDevices(t *testing.T) {
	lun := func(device string) string {
		return `{domain: {devices: {disks: [{name: root}, {name: b, ` + device + `}]}}, volumes: [` + root + `, {name: b, persistentVolumeClaim: {claimName: b}}]}`
	}
	tables{
		"default": {`{domain: {devices: {disks: [{name: root}]}}}`, nil},
		"two":     {`{domain: {devices: {disks: [{name: root, disk: {}, cdrom: {}}]}}}`, []string{"domain.devices.disks[0] disk, cdrom"}},
		"ide":     {`{domain: {devices: {disks: [{name: root, disk: {bus: ide}}]}}}`, []string{`domain.devices.disks[0].disk.bus "ide": supported values`}},
		"tray":    {`{domain: {devices: {disks: [{name: root, cdrom: {tray: ajar}}]}}}`, []string{`domain.devices.disks[0].cdrom.tray "ajar": supported values: "open", "closed"`}},
		"drive":   {`{domain: {devices: {disks: [{name: root, cdrom: {bus: virtio}}]}}}`, []string{`domain.devices.disks[0].cdrom.bus "virtio"`}},
		"lun":     {`{domain: {devices: {disks: [{name: root, lun: {bus: scsi}}]}}}`, []string{"domain.devices.disks[0].lun persistentVolumeClaim"}},
		"two blocks": {`{domain: {devices: {disks: [{name: root, blockSize: {matchVolume: {}, custom: {logical: 512, physical: 512}}}]}}}`,
			[]string{"domain.devices.disks[0].blockSize custom, matchVolume"}},
		"lun on virtio": {lun("lun: {bus: virtio}"), []string{`domain.devices.disks[1].lun.bus "virtio": supported values: "scsi"`}},
		"lun on sata":   {lun("lun: {bus: sata}"), []string{`domain.devices.disks[1].lun.bus "sata"`}},
		"named lun":     {lun("serial: a, lun: {}"), []string{"domain.devices.disks[1].serial Forbidden"}},
		"a lun":         {lun("lun: {}"), nil},
		"shared":        {lun("shareable: true, cache: none, disk: {bus: virtio}"), nil},
		"shared, cached": {lun("shareable: true, cache: writeback, disk: {bus: virtio}"),
			[]string{`domain.devices.disks[1].cache "writeback": must be none for a shareable disk`}},
		"sata":    {`{domain: {devices: {disks: [{name: root, disk: {bus: sata, readonly: true}}]}}}`, []string{"domain.devices.disks[0].disk.readonly sata"}},
		"pci":     {`{domain: {devices: {disks: [{name: root, disk: {bus: virtio, pciAddress: "0000:81:01.0"}}]}}}`, nil},
		"odd pci": {`{domain: {devices: {disks: [{name: root, disk: {bus: virtio, pciAddress: "81:01.0"}}]}}}`, []string{"domain.devices.disks[0].disk.pciAddress 0000:81:01.0"}},
		"thread":  {`{domain: {devices: {disks: [{name: root, dedicatedIOThread: true, disk: {bus: sata}}]}}}`, []string{"domain.devices.disks[0].dedicatedIOThread needs bus virtio"}},
		"usual bus": {`{domain: {devices: {disks: [{name: root, dedicatedIOThread: true, disk: {readonly: true, pciAddress: "0000:81:01.0"}}]}}}`,
			[]string{"domain.devices.disks[0].disk.readonly sata", "domain.devices.disks[0].disk.pciAddress needs bus virtio, not sata", "domain.devices.disks[0].dedicatedIOThread needs bus virtio, not sata"}},
		"usual bus of arm64": {`{architecture: arm64, domain: {devices: {disks: [{name: root, dedicatedIOThread: true, disk: {readonly: true, pciAddress: "0000:81:01.0"}}]}}}`, nil},
		"a preference's bus": {`spec: {preference: {name: p}, template: {spec: {domain: {devices: {disks: [{name: root, dedicatedIOThread: true}]}}}}}`, nil},
		"serial":             {`{domain: {devices: {disks: [{name: root, serial: "a/b"}]}}}`, []string{"domain.devices.disks[0].serial letters"}},
		"cache":              {`{domain: {devices: {disks: [{name: root, cache: all}]}}}`, []string{`domain.devices.disks[0].cache "all"`}},
		"blocks":             {`{domain: {devices: {disks: [{name: root, blockSize: {custom: {logical: 512, physical: 4096}}}]}}}`, nil},
		"odd blocks": {`{domain: {devices: {disks: [{name: root, disk: {bus: virtio}, blockSize: {custom: {logical: 513, physical: 4096}}}]}}}`,
			[]string{"domain.devices.disks[0].blockSize.custom.logical power of 2"}},
	}.run(t)
}

func TestVolumeSources(t *testing.T) {
	volume := func(source string) string { return `{volumes: [` + root + `, {name: b, ` + source + `}]}` }
	tables{
		"no image":    {volume(`containerDisk: {image: ""}`), []string{"volumes[1].containerDisk.image Required"}},
		"odd image":   {volume(`containerDisk: {image: "a b"}`), []string{`volumes[1].containerDisk.image "a b"`}},
		"capacity":    {volume(`emptyDisk: {capacity: "0"}`), []string{"volumes[1].emptyDisk.capacity must be more than 0"}},
		"claim":       {volume(`persistentVolumeClaim: {claimName: ""}`), []string{"volumes[1].persistentVolumeClaim.claimName Required"}},
		"data volume": {volume(`dataVolume: {name: ../x}`), []string{"volumes[1].dataVolume.name"}},
		"metrics":     {volume(`downwardMetrics: {}`), nil},
		"config map":  {volume(`configMap: {}`), []string{"volumes[1].configMap.name Required"}},
		"secret":      {volume(`secret: {}`), []string{"volumes[1].secret.secretName Required"}},
		"ephemeral":   {volume(`ephemeral: {}`), []string{"volumes[1].ephemeral.persistentVolumeClaim Required"}},
		"sysprep":     {volume(`sysprep: {}`), []string{"volumes[1].sysprep secret, configMap"}},
		"host disk":   {volume(`hostDisk: {path: /d/x.img, type: DiskOrCreate, capacity: 1Gi}`), nil},
		"host size":   {volume(`hostDisk: {path: /d/x.img, type: Disk, capacity: 1Gi}`), []string{"volumes[1].hostDisk.capacity needs type DiskOrCreate"}},
		"accounts": {volume(`serviceAccount: {serviceAccountName: a}}, {name: c, serviceAccount: {serviceAccountName: a}`),
			[]string{"volumes[2].serviceAccount volumes[1] is one too"}},
	}.run(t)
}

func TestDirectoriesOfTheLauncher(t *testing.T) {
	shared := func(path, devices string) string {
		return `{domain: {devices: {` + devices + `}}, volumes: [` + root + `, {name: b, containerPath: {path: ` + path + `}}]}`
	}
	const filesystem = `filesystems: [{name: b, virtiofs: {}}]`
	tables{
		"shared":         {shared("/opt/tools", filesystem), nil},
		"alone":          {shared("/opt/tools", ""), []string{"volumes[1].containerPath Required"}},
		"as a disk":      {shared("/opt/tools", `disks: [{name: b}]`), []string{"domain.devices.disks[0].name a directory"}},
		"the launcher's": {shared("/var/run/kubevirt/x", filesystem), []string{"volumes[1].containerPath.path must not be in /var/run/kubevirt"}},
		"libvirt's":      {shared("/run/libvirt", filesystem), []string{"volumes[1].containerPath.path must not be in /run/libvirt"}},
		"a neighbour":    {shared("/var/run/kubevirt2", filesystem), nil},
	}.run(t)
}

func TestPathsThatLeadOut(t *testing.T) {
	fields := map[string]string{
		"volumes[1].containerDisk.path":                   `{volumes: [` + root + `, {name: b, containerDisk: {image: i, path: %q}}]}`,
		"volumes[1].hostDisk.path":                        `{volumes: [` + root + `, {name: b, hostDisk: {type: Disk, path: %q}}]}`,
		"volumes[1].containerPath.path":                   `{domain: {devices: {filesystems: [{name: b, virtiofs: {}}]}}, volumes: [` + root + `, {name: b, containerPath: {path: %q}}]}`,
		"domain.firmware.kernelBoot.container.kernelPath": `{domain: {firmware: {kernelBoot: {container: {image: i, kernelPath: %q}}}}}`,
		"domain.firmware.kernelBoot.container.initrdPath": `{domain: {firmware: {kernelBoot: {container: {image: i, kernelPath: /k, initrdPath: %q}}}}}`,
	}
	paths := []string{
		"../../../../etc/hostname", "/disk/../../etc/hostname", "/", "/disk/", "disk/root.img",
		"//disk//root.img", "/disk/./root.img", "/disk/root\n.img", "/" + strings.Repeat("x", 5000),
	}
	for at, over := range fields {
		expect(t, validate.VM(parse(t, fmt.Sprintf(over, "/disk/root.img"))), nil)
		for _, path := range paths {
			t.Run(at, func(t *testing.T) {
				expect(t, validate.VM(parse(t, fmt.Sprintf(over, path))), []string{at + " must be the absolute path of a file"})
			})
		}
	}
}

func TestCloudInit(t *testing.T) {
	seed := func(source string) string { return `{volumes: [` + root + `, {name: seed, ` + source + `}]}` }
	text := func(n int) string { return strings.Repeat("x", n) }
	encoded := func(n int) string {
		all := base64.StdEncoding.EncodeToString([]byte(text(n)))
		return fmt.Sprintf("%q", all[:76]+"\n"+all[76:])
	}
	const at = "volumes[1].cloudInitNoCloud"
	tables{
		"network alone": {seed(`cloudInitNoCloud: {networkData: x}`), nil},
		"secret":        {seed(`cloudInitConfigDrive: {networkDataSecretRef: {name: netonly}}`), nil},
		"nothing":       {seed(`cloudInitNoCloud: {}`), []string{at + " userData, userDataBase64, secretRef, networkData"}},
		"twice":         {seed(`cloudInitNoCloud: {userData: x, secretRef: {name: s}}`), []string{at + ` "userData, secretRef": must have only one`}},
		"2048":          {seed(`cloudInitNoCloud: {userData: ` + text(2048) + `}`), nil},
		"2049":          {seed(`cloudInitNoCloud: {userData: ` + text(2049) + `}`), []string{at + ".userData userData has 2049 bytes and may have 2048: put more into a Secret and name it in secretRef"}},
		"2048 encoded":  {seed(`cloudInitNoCloud: {userDataBase64: ` + encoded(2048) + `}`), nil},
		"2049 encoded":  {seed(`cloudInitNoCloud: {userDataBase64: ` + encoded(2049) + `}`), []string{at + ".userDataBase64 2049 bytes"}},
		"not encoded":   {seed(`cloudInitNoCloud: {userDataBase64: "§"}`), []string{at + ".userDataBase64 must be base64"}},
		"bytes":         {seed(`cloudInitNoCloud: {userData: ` + strings.Repeat("日", 1000) + `}`), []string{at + ".userData 3000 bytes"}},
		"network":       {seed(`cloudInitConfigDrive: {networkData: ` + text(2049) + `}`), []string{"volumes[1].cloudInitConfigDrive.networkData networkDataSecretRef"}},
	}.run(t)
}
