//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// nic changes the one interface of a test's VM.
func nic(change func(*v1.Interface)) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) { change(&vm.Spec.Template.Spec.Domain.Devices.Interfaces[0]) }
}

func bridged(i *v1.Interface) {
	i.InterfaceBindingMethod = v1.InterfaceBindingMethod{Bridge: &v1.InterfaceBridge{}}
}

// asked types a command into a guest's shell and waits for what it prints.
func (p place) asked(c *lab.Console, command, want string) {
	p.t.Helper()
	p.must(c.Send(command + "\n"))
	p.must(c.Expect(p.t.Context(), want, busy*30*time.Second))
}

// address returns the address of a VMI whose guest answers on port 80.
func (p place) address(name string) string {
	p.t.Helper()
	vmi := p.phase(name, v1.Running, 2*time.Minute)
	if len(vmi.Status.Interfaces) == 0 || vmi.Status.Interfaces[0].IP == "" {
		p.t.Fatalf("VMI has interfaces %+v, want one with an IP", vmi.Status.Interfaces)
	}
	ip := vmi.Status.Interfaces[0].IP
	p.answers(ip)
	return ip
}

func (p place) answers(ip string) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), 90*time.Second, "the guest's web server", func(ctx context.Context) (bool, string, error) {
		body, err := get(ctx, "http://"+ip+"/")
		return strings.Contains(body, "host "), body, err
	}))
}

// service makes a Service of the guests with that label.
func (p place) service(name string) {
	p.t.Helper()
	s := &corev1.Service{ObjectMeta: objectMeta(p.ns, name)}
	s.Spec.Selector = map[string]string{"app": name}
	s.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	p.create(s)
}

func labelled(app string) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) { vm.Spec.Template.ObjectMeta.Labels = map[string]string{"app": app} }
}

// Only listed ports reach a guest behind masquerade; it resolves the cluster's names, and reaches Services, its own
// among them.
func TestMasquerade(t *testing.T) {
	p := newPlace(t, "masquerade")
	p.service("web")
	p.create(p.vm("web", labelled("web"), nic(func(i *v1.Interface) { i.Ports = []v1.Port{{Name: "http", Port: 80}} })))
	ip := p.address("web")
	if conn, err := net.DialTimeout("tcp", ip+":22", 3*time.Second); err == nil {
		conn.Close()
		t.Error("port 22 isn't listed and is reached")
	}
	c := p.shell("web")
	service := fmt.Sprintf("web.%s.svc.cluster.local", p.ns)
	p.asked(c, "ip -4 addr show eth0", "10.0.2.2/24")
	p.asked(c, "cat /etc/resolv.conf", "search "+p.ns+".svc.cluster.local")
	p.asked(c, "nslookup "+service, "Name:")
	p.asked(c, "until wget -q -T 5 -O - http://"+service+"/; do sleep 1; done", "host web counter")
}

// A guest with the bridge binding has the Pod's own address and MAC, keeps them when it reboots, and is answered and
// reached while the node agent is away and after it is back.
func TestBridge(t *testing.T) {
	p := placeAlone(t, "bridge")
	p.service("web")
	p.create(p.vm("web", labelled("web"), nic(bridged)))
	ip := p.address("web")
	before, seen := p.qemu("web"), p.phase("web", v1.Running, time.Second).Status.Interfaces[0]
	c := p.shell("web")
	p.asked(c, "ip -4 addr show eth0", ip+"/")
	p.asked(c, "cat /sys/class/net/eth0/address", seen.MAC)
	p.asked(c, "until wget -q -T 5 -O - http://web."+p.ns+".svc.cluster.local/; do sleep 1; done", "host web counter")
	p.asked(c, "(sleep 1; udhcpc -n -q -f -t 10 -i eth0 -s /etc/udhcpc.script && echo leased >/run/again) & echo asks''again", "asksagain")
	p.killed("virt-handler", func() { p.answers(ip) }) // which closes the console, too
	p.must(theLab.Available(t.Context(), 2*time.Minute))
	if after := p.qemu("web"); after != before {
		t.Errorf("QEMU was %+v, is %+v", before, after)
	}
	if now := p.phase("web", v1.Running, time.Second).Status.Interfaces[0]; now.MAC != seen.MAC || now.IP != seen.IP {
		t.Errorf("status was %+v, is %+v", seen, now)
	}
	c, err := theLab.Console(t.Context(), p.ns, "web")
	p.must(err)
	t.Cleanup(func() { _ = c.Close() })
	p.asked(c, "\nuntil cat /run/again; do sleep 1; done", "leased")
	p.must(c.Send("reboot -f\n"))
	p.must(c.Expect(t.Context(), "web login:", busy*time.Minute))
	p.answers(ip)
}

// What the owner wants a guest to be told by DHCP, it is told.
func TestDHCPOptions(t *testing.T) {
	p := newPlace(t, "dhcp")
	p.create(p.vm("web", nic(func(i *v1.Interface) {
		i.MacAddress = "02-00-5E-00-53-0A" // as people write it
		i.DHCPOptions = &v1.DHCPOptions{
			BootFileName: "pxe.0", TFTPServerName: "tftp.example", NTPServers: []string{"10.9.9.9"},
			PrivateOptions: []v1.DHCPPrivateOptions{{Option: 240, Value: "private"}},
		}
	})))
	p.address("web")
	if mac := p.phase("web", v1.Running, time.Second).Status.Interfaces[0].MAC; mac != "02:00:5e:00:53:0a" {
		t.Errorf("status has MAC %q", mac)
	}
	c := p.shell("web")
	p.asked(c, "cat /sys/class/net/eth0/address", "02:00:5e:00:53:0a")
	p.asked(c, `printf '#!/bin/sh\nenv >/run/said\n' >/run/say; chmod +x /run/say; echo wri''tten`, "written")
	p.asked(c, "udhcpc -n -q -f -t 10 -i eth0 -s /run/say -O bootfile -O tftp -O ntpsrv -O 240; echo as''ked", "asked")
	for _, want := range []string{"bootfile=pxe.0", "tftp=tftp.example", "ntpsrv=10.9.9.9", "opt240=70726976617465"} {
		p.asked(c, "cat /run/said | grep "+want[:4], want)
	}
}

// An interface whose state is down has no cable, and every model is one that a guest could have.
func TestLinkDown(t *testing.T) {
	p := newPlace(t, "linkdown")
	p.create(p.vm("web", nic(func(i *v1.Interface) { i.State = v1.InterfaceStateLinkDown })))
	vmi := p.phase("web", v1.Running, 2*time.Minute)
	if state := vmi.Status.Interfaces[0].LinkState; state != "down" {
		t.Errorf("status has linkState %q", state)
	}
	c, err := theLab.Console(t.Context(), p.ns, "web")
	p.must(err)
	defer c.Close()
	p.must(c.Expect(t.Context(), "guest login:", busy*time.Minute)) // nobody told it its name
	p.asked(c, "root", "# ")
	p.asked(c, "ip link set eth0 up; echo carrier is $(cat /sys/class/net/eth0/carrier)", "carrier is 0")
}

// A secondary network is attached by its computed name and bridged to the guest. It takes the cluster's meta-plugin.
func TestSecondaryNetwork(t *testing.T) {
	p := newPlace(t, "secondary")
	_, err := theLab.Apply(t.Context(), fmt.Sprintf(`
apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: red-net, namespace: %s}
spec:
  config: '{"cniVersion": "1.0.0", "name": "red-net", "type": "bridge", "bridge": "red0", "ipam": {"type": "host-local", "subnet": "192.168.77.0/24"}}'
`, p.ns))
	p.must(err)
	p.create(p.vm("web", func(vm *v1.VirtualMachine) {
		s := &vm.Spec.Template.Spec
		red := v1.Interface{Name: "red"}
		bridged(&red)
		s.Domain.Devices.Interfaces = append(s.Domain.Devices.Interfaces, red)
		s.Networks = append(s.Networks, v1.Network{Name: "red", NetworkSource: v1.NetworkSource{Multus: &v1.MultusNetwork{NetworkName: "red-net"}}})
	}))
	p.address("web")
	found := p.phase("web", v1.Running, time.Second).Status.Interfaces
	if len(found) != 2 || found[1].PodInterfaceName != "podb1f51a511f1" || !strings.Contains(found[1].InfoSource, "multus-status") || found[1].IP == "" {
		t.Fatalf("status has interfaces %+v", found)
	}
	c := p.shell("web")
	p.asked(c, "ip -4 addr show eth1", found[1].IP+"/24")
	p.asked(c, "cat /sys/class/net/eth1/address", found[1].MAC)
}
