//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
)

// network defines a network of the test's namespace by the configuration of one plugin, for the cluster's meta-plugin.
func (p place) network(name, config string) {
	p.t.Helper()
	_, err := theLab.Apply(p.t.Context(), fmt.Sprintf(`
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: %s, namespace: %s}
spec:
  config: '{"cniVersion": "1.0.0", "name": "%s-%s", %s}'
`, name, p.ns, p.ns, name, config))
	p.must(err)
}

// A guest has the static address that its cloud-init network data gives, on a network that has no addresses to give.
func TestStaticAddress(t *testing.T) {
	p := newPlace(t, "static")
	p.network("plain", `"type": "bridge", "bridge": "plain0", "ipam": {}`)
	p.create(p.vm("web", static("192.168.79.2/24")))
	p.create(p.vm("peer", static("192.168.79.3/24")))
	p.phase("web", v1.Running, 3*time.Minute)
	p.phase("peer", v1.Running, 3*time.Minute)
	c := p.shell("peer")
	p.asked(c, "ip -4 addr show eth1", "192.168.79.3/24")
	p.asked(c, "for n in 1 2 3 4 5 6; do wget -q -T 5 -O - http://192.168.79.2/ && break; sleep 5; done || echo fai''led", "host web counter")
}

// static gives the VM a second interface and network data for it. What cloud-init does with it, a command does: it sets
// the address that it reads from the seed's disk.
func static(address string) func(*v1.VirtualMachine) {
	const apply = "until [ -e /run/dhcp/eth1 ]; do sleep 1; done; sleep 2\n" + // the guest asks for a lease first
		"mkdir -p /run/config && mount -t iso9660 -o ro /dev/vdb /run/config && ip link set eth1 up && " +
		"ip addr add $(sed -n 's/.*addresses: \\[\\(.*\\)\\].*/\\1/p' /run/config/network-config) dev eth1"
	return func(vm *v1.VirtualMachine) {
		s := &vm.Spec.Template.Spec
		plain := v1.Interface{Name: "plain"}
		bridged(&plain)
		s.Domain.Devices.Interfaces = append(s.Domain.Devices.Interfaces, plain)
		s.Networks = append(s.Networks, v1.Network{Name: "plain", NetworkSource: v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: "plain"}}})
		s.Domain.Devices.Disks = append(s.Domain.Devices.Disks, v1.Disk{Name: "seed", DiskDevice: v1.DiskDevice{Disk: &v1.DiskTarget{Bus: v1.DiskBusVirtio}}})
		s.Volumes = append(s.Volumes, v1.Volume{Name: "seed", VolumeSource: v1.VolumeSource{CloudInitNoCloud: &v1.CloudInitNoCloudSource{
			UserData:    "#!/bin/sh\n" + apply + "\n",
			NetworkData: "version: 2\nethernets:\n  eth1:\n    addresses: [" + address + "]\n",
		}}})
	}
}
