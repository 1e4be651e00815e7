//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

const (
	netOnly = `{"version": 1, "config": [{"type": "physical", "name": "eth0", "subnets": [{"type": "dhcp"}]}]}` + "\n"
	answers = "<unattend>\r\n</unattend>\r\n"
	sshKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB5rZXkgb2YgdGhlIGVuZC10by1lbmQgdGVzdHM= e2e"
)

func ref(name string) *k8sv1.LocalObjectReference { return &k8sv1.LocalObjectReference{Name: name} }

func (p place) secret(name string, data map[string]string) {
	p.t.Helper()
	p.create(&k8sv1.Secret{ObjectMeta: objectMeta(p.ns, name), StringData: data})
}

// sameBytes wants a file of a guest to be so byte for byte: line ends and letters get lost easily.
func (p place) sameBytes(c *lab.Console, file, want string) {
	p.t.Helper()
	p.asked(c, "base64 -w0 "+file+"; echo", base64.StdEncoding.EncodeToString([]byte(want)))
}

// Cases 08 and 17: network data alone, in a Secret that comes after the VM, on a ConfigDrive with a public key; and the
// answers of an unattended Windows set-up, on a drive for discs. A downwardMetrics disk tells of the node.
func TestSeedsThatComeLater(t *testing.T) {
	p := newPlace(t, "seeds")
	p.create(&k8sv1.ConfigMap{ObjectMeta: objectMeta(p.ns, "answers"), Data: map[string]string{"Autounattend.xml": answers}})
	p.secret("keys", map[string]string{"mine": sshKey})
	p.create(p.vm("netonly",
		with("seed", v1.VolumeSource{CloudInitConfigDrive: &v1.CloudInitConfigDriveSource{NetworkDataSecretRef: ref("netonly")}}),
		with("node", v1.VolumeSource{DownwardMetrics: &v1.DownwardMetricsVolumeSource{}}),
		withDisc("answers", v1.VolumeSource{Sysprep: &v1.SysprepSource{ConfigMap: ref("answers")}}),
		func(vm *v1.VirtualMachine) {
			key := &v1.SSHPublicKeyAccessCredential{}
			key.Source.Secret = &v1.AccessCredentialSecretSource{SecretName: "keys"}
			key.PropagationMethod.ConfigDrive = &v1.ConfigDriveSSHPublicKeyAccessCredentialPropagation{}
			vm.Spec.Template.Spec.AccessCredentials = []v1.AccessCredential{{SSHPublicKey: key}}
		}))
	p.unsynchronized("netonly", "", "spec.volumes[1].cloudInitConfigDrive", `Secret "netonly"`)
	start := time.Now()
	p.secret("netonly", map[string]string{"networkdata": netOnly})
	p.phase("netonly", v1.Running, 3*time.Minute)
	t.Logf("running %s after its Secret came", time.Since(start).Round(time.Second))
	c := p.shell("netonly")
	p.asked(c, "mkdir -p /s /w && mount -t iso9660 -o ro /dev/vdb /s && mount -t iso9660 -o ro /dev/sr0 /w && echo moun''ted", "mounted")
	for file, want := range map[string]string{"/s/openstack/latest/network_data.json": netOnly, "/w/Autounattend.xml": answers} {
		p.sameBytes(c, file, want)
	}
	p.asked(c, "cat /s/openstack/latest/meta_data.json", sshKey)
	p.asked(c, `echo "files:$(ls /s/openstack/latest | wc -w)"`, "files:2")
	for disk, label := range map[string]string{"vdb": "config-2", "sr0": "unattendCD"} {
		p.asked(c, "dd if=/dev/"+disk+" bs=1 skip=32808 count=12 2>/dev/null | tr -d ' '; echo '<'", label+"<")
	}
	p.asked(c, "head -c 4 /dev/vdc; echo '>'", "mvbd>")
	p.asked(c, "grep -a -A1 HostName /dev/vdc", "<value>node1</value>")
}

func withDisc(name string, source v1.VolumeSource) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) {
		with(name, source)(vm)
		disks := vm.Spec.Template.Spec.Domain.Devices.Disks
		disks[len(disks)-1].DiskDevice = v1.DiskDevice{CDRom: &v1.CDRomTarget{Bus: v1.DiskBusSATA}}
	}
}

// Case 17: user data that isn't plain ASCII, and as much of it as a Secret holds, byte for byte.
func TestUserDataIsByteExact(t *testing.T) {
	p := newPlace(t, "bytes")
	awkward := "#!/bin/sh\r\n# grüße ☕ 日本\r\n"
	big := "#!/bin/sh\n" + strings.Repeat("# 0123456789abcdef\r\n", 204800/20)
	p.secret("big", map[string]string{"userData": big})
	p.create(p.vm("bytes",
		with("text", v1.VolumeSource{CloudInitNoCloud: &v1.CloudInitNoCloudSource{UserDataBase64: base64.StdEncoding.EncodeToString([]byte(awkward))}}),
		with("big", v1.VolumeSource{CloudInitConfigDrive: &v1.CloudInitConfigDriveSource{UserDataSecretRef: ref("big")}})))
	p.phase("bytes", v1.Running, 2*time.Minute)
	c := p.shell("bytes")
	p.asked(c, "mkdir -p /a /b && mount -t iso9660 -o ro /dev/vdb /a && mount -t iso9660 -o ro /dev/vdc /b && echo moun''ted", "mounted")
	p.sameBytes(c, "/a/user-data", awkward)
	p.asked(c, `echo "bytes:$(wc -c </b/openstack/latest/user_data)"`, fmt.Sprintf("bytes:%d", len(big)))
}
