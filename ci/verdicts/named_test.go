package verdicts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"virtstack.io/virtstack/kube/kubetest"
)

// named are manifests by name: the spec of a machine with root as its only disk and volume, and what is wrong with it:
// the one field below spec.template.spec, and a part of what is said. No field: it is right.
type named map[string]struct{ spec, field, part string }

const (
	tiny   = `volumes: [{name: root, containerDisk: {image: "guest.example.test/tiny:1"}}]`
	seeded = `volumes: [{name: root, containerDisk: {image: "guest.example.test/tiny:1"}}, {name: seed, %s}]`
	pod    = `networks: [{name: net, pod: {}}]`
	at     = "domain.devices.interfaces[0]."
)

// with is a spec with a domain (but its memory), and more.
func with(domain string, more ...string) string {
	return "{domain: {memory: {guest: 128Mi}, " + domain + "}, " + strings.Join(more, ", ") + "}"
}

// nic is a spec with one interface behind masquerade.
func nic(rest string) string {
	return with(`devices: {disks: [{name: root, bootOrder: 1}], interfaces: [{name: net, masquerade: {}, `+rest+`}]}`, pod, tiny)
}

// Sources: kubevirt/kubevirt#1411, #1092, #1213, #4033, #4897, #5556, #6712, #2602.
func (n named) machines() {
	drive := func(disk string) string { return with(`devices: {disks: [{name: root}, `+disk+`]}`, tiny) }
	efi := func(features string) string {
		return with(`firmware: {bootloader: {efi: {}}}, devices: {}`+features, tiny)
	}
	seed := func(source string) string { return with(`devices: {}`, fmt.Sprintf(seeded, source)) }
	for name, tc := range map[string][3]string{
		"a boot order for two":      {nic("bootOrder: 1"), at + "bootOrder", `Invalid value: 1: must be unique: disk "root" has 1 too`},
		"a boot order of 0":         {nic("bootOrder: 0"), at + "bootOrder", "should be greater than or equal to 1"},
		"boot orders with gaps":     {nic("bootOrder: 7"), "", ""},
		"a host name in capitals":   {with("devices: {}", tiny, "hostname: DB1"), "hostname", `"DB1": must be a DNS label: lower-case`},
		"network data alone":        {seed(`cloudInitNoCloud: {networkData: "version: 2"}`), "", ""},
		"network data in a Secret":  {seed(`cloudInitConfigDrive: {networkDataSecretRef: {name: missing}}`), "", ""},
		"a seed of nothing":         {seed(`cloudInitNoCloud: {}`), "volumes[1].cloudInitNoCloud", "userData, userDataBase64, secretRef, networkData, networkDataBase64"},
		"a seed at its limit":       {seed(`cloudInitNoCloud: {userData: "` + strings.Repeat("x", 2048) + `"}`), "", ""},
		"a seed past its limit":     {seed(`cloudInitNoCloud: {userData: "` + strings.Repeat("x", 2049) + `"}`), "volumes[1].cloudInitNoCloud.userData", "2049 bytes"},
		"a volume without a disk":   {with("devices: {}", tiny), "", ""},
		"a disk without a volume":   {drive("{name: ghost, disk: {bus: virtio}}"), "domain.devices.disks[1].name", `"ghost": must be the name of one`},
		"an empty drive":            {drive("{name: drive, cdrom: {bus: sata}}"), "domain.devices.disks[1].name", "DeclarativeHotplugVolumes"},
		"a disk of nothing":         {seed(`emptyDisk: {capacity: "0"}`), "volumes[1].emptyDisk.capacity", "must be more than 0"},
		"a disk of an odd size":     {seed(`emptyDisk: {capacity: "10000001"}`), "", ""},
		"secure boot without SMM":   {efi(""), "domain.firmware.bootloader.efi.secureBoot", "efi.secureBoot: false, or features.smm.enabled: true"},
		"secure boot with SMM":      {efi(", features: {smm: {}}"), "", ""},
		"a path that leads out":     {seed(`containerDisk: {image: i, path: ../../etc/hostname}`), "volumes[1].containerDisk.path", "must be the absolute path of a file"},
		"a claim's name as a path":  {seed(`persistentVolumeClaim: {claimName: ../x}`), "volumes[1].persistentVolumeClaim.claimName", `"../x"`},
		"a Secret's name as a path": {seed(`secret: {secretName: a/b}`), "volumes[1].secret.secretName", `"a/b"`},
	} {
		n[name] = struct{ spec, field, part string }{tc[0], tc[1], tc[2]}
	}
}

// amounts of memory, as guest's and as request. Sources: kubevirt/kubevirt#1100, #5730, #3921, #8367.
func (n named) amounts() {
	for amount, part := range map[string]string{
		"64Mi": "", "1.5Gi": "", "1000M": "", "1e9": "", "134217728": "", "128974848e0": "",
		"2048": "is 2048 bytes and must be at least 1000000: give a unit", "512m": "m stands for thousandths",
		"-1Gi": "must not be negative", "0": "must be more than 0",
	} {
		for field, spec := range map[string]string{
			"domain.memory.guest":              fmt.Sprintf("{domain: {memory: {guest: %q}, devices: {}}, %s}", amount, tiny),
			"domain.resources.requests.memory": fmt.Sprintf("{domain: {resources: {requests: {memory: %q}}, devices: {}}, %s}", amount, tiny),
		} {
			wrong := field
			if part == "" {
				wrong = ""
			}
			n["memory "+amount+" in "+field] = struct{ spec, field, part string }{spec, wrong, part}
		}
	}
}

// addresses of an interface. Sources: kubevirt/kubevirt#1213, #2005, #12022.
func (n named) addresses() {
	for mac, right := range map[string]bool{
		"02:00:5e:00:53:0a": true, "02:00:5E:00:53:0A": true, "02-00-5e-00-53-0a": true, "0200.5e00.530a": true,
		"02:00:5e:00:53": false, "02:00:5e:00:53:0a:0b:0c": false, "02:00:5e:00:53:0g": false, "01:00:5e:00:53:0a": false,
		"02:00:00:00:00:00": false, "00:00:00:00:00:00": false,
	} {
		field, part := at+"macAddress", fmt.Sprintf("%q", mac)
		if right {
			field, part = "", ""
		}
		n["MAC "+mac] = struct{ spec, field, part string }{nic(fmt.Sprintf("macAddress: %q", mac)), field, part}
	}
}

// paths that lead out of an image, in each field that holds one. Source: GHSA-qv98-3369-g364.
func (n named) paths() {
	for field, spec := range map[string]string{
		"volumes[1].containerDisk.path":                   with("devices: {}", fmt.Sprintf(seeded, "containerDisk: {image: i, path: %q}")),
		"volumes[1].hostDisk.path":                        with("devices: {}", fmt.Sprintf(seeded, "hostDisk: {type: Disk, path: %q}")),
		"domain.firmware.kernelBoot.container.kernelPath": with("firmware: {kernelBoot: {container: {image: i, kernelPath: %q}}}, devices: {}", tiny),
		"domain.firmware.kernelBoot.container.initrdPath": with("firmware: {kernelBoot: {container: {image: i, kernelPath: /k, initrdPath: %q}}}, devices: {}", tiny),
	} {
		for _, path := range []string{
			"../../../../etc/hostname", "/disk/../../etc/hostname", "/", "/disk/", "disk/root.img", "//disk//root.img", "/disk/./root.img",
		} {
			n[field+" "+path] = struct{ spec, field, part string }{fmt.Sprintf(spec, path), field, "must be the absolute path of a file"}
		}
		// A clean path stays in the image, whatever the host has there.
		clean, outside, part := fmt.Sprintf(spec, "/proc/self/environ"), "", ""
		if strings.Contains(field, "hostDisk") { // of a node only what its administrator opened
			outside, part = field, "must be a file in a directory that annotation"
		}
		n[field+" /proc/self/environ"] = struct{ spec, field, part string }{clean, outside, part}
	}
}

// What is refused is refused at its field, and nowhere else, by virtctl and by a server alike.
func TestWhatIsWrongIsNamed(t *testing.T) {
	all := named{}
	all.machines()
	all.amounts()
	all.addresses()
	all.paths()
	e := kubetest.Start(t)
	ns := e.Namespace(t)
	serve(t, e)
	for name, tc := range all {
		t.Run(name, func(t *testing.T) {
			text := "{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web}, spec: {runStrategy: Halted, template: {spec: " + tc.spec + "}}}"
			var want []string
			if tc.field != "" {
				want = []string{"spec.template.spec." + tc.field}
			}
			mine, fields := offline(t, text)
			server, causes, err := online(t, e, ns, text)
			if mine != (want == nil) || server != mine || !slices.Equal(fields, want) || !slices.Equal(causes, want) {
				t.Errorf("virtctl names %q, the server %q (%v); want %q", fields, causes, err, want)
			}
			if err != nil && !strings.Contains(err.Error(), tc.part) {
				t.Errorf("got %v\nwant a message with %s", err, tc.part)
			}
		})
	}
}
