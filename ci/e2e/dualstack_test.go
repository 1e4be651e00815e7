//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// onNetwork is the annotation by which the cluster's meta-plugin gives a Pod another network than the cluster's.
func (p place) onNetwork(name string) map[string]string {
	return map[string]string{"v1.multus-cni.io/default-network": p.ns + "/" + name}
}

// A guest behind masquerade in a Pod with addresses of both families gets one of each by asking for it, and is reached at
// both of the Pod's.
func TestDualStack(t *testing.T) {
	p := newPlace(t, "dual")
	p.network("dual", `"type": "bridge", "bridge": "dual0", "isGateway": true, "ipam": {"type": "host-local",
	    "ranges": [[{"subnet": "192.168.81.0/24"}], [{"subnet": "fd00:81::/64"}]], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}`)
	p.create(p.vm("web", func(vm *v1.VirtualMachine) { vm.Spec.Template.ObjectMeta.Annotations = p.onNetwork("dual") }))
	found := p.phase("web", v1.Running, 3*time.Minute).Status.Interfaces
	if len(found) != 1 || len(found[0].IPs) != 2 || !strings.HasPrefix(found[0].IPs[0], "192.168.81.") || !strings.HasPrefix(found[0].IPs[1], "fd00:81::") {
		t.Fatalf("status has interfaces %+v, want one with an address of each family", found)
	}
	c := p.shell("web")
	p.asked(c, "ip -4 addr show eth0", "10.0.2.2/24")
	p.asked(c, "until ip -6 route show default | grep 'via fe80'; do sleep 1; done", "via fe80::1")
	const script = `printf '#!/bin/sh\n[ -z "$ipv6" ] || ip addr add $ipv6/128 dev eth0\n' >/run/six; chmod +x /run/six; `
	p.asked(c, script+"udhcpc6 -n -q -f -i eth0 -s /run/six; ip -6 addr show eth0 | grep inet6.fd10", "inet6 fd10:0:2::2/128")
	p.reached("client", found[0].IPs...)
	p.asked(c, "wget -q -T 90 -O - 'http://[fd00:81::1]:1/' 2>&1 | head -1; echo as''ked", "refused") // by the gateway, which has heard
}

// reached has the kubelet ask for the page of each address, and waits for all the answers.
func (p place) reached(name string, addresses ...string) {
	p.t.Helper()
	asks := p.does(name, "sleep 600")
	sh := asks.Spec.Containers[0]
	asks.Spec.Containers = nil
	for i, ip := range addresses {
		sh.Name = fmt.Sprintf("asks%d", i)
		sh.ReadinessProbe = &k8sv1.Probe{TimeoutSeconds: 5, PeriodSeconds: 2, ProbeHandler: k8sv1.ProbeHandler{
			HTTPGet: &k8sv1.HTTPGetAction{Host: ip, Port: intstr.FromInt32(80)},
		}}
		asks.Spec.Containers = append(asks.Spec.Containers, sh)
	}
	asks.Spec.TerminationGracePeriodSeconds = new(int64)
	p.create(asks)
	p.must(lab.Until(p.t.Context(), 2*time.Minute, fmt.Sprintf("the guest to answer at %q", addresses), func(ctx context.Context) (bool, string, error) {
		found := &k8sv1.Pod{}
		err := theLab.Client.Get(ctx, p.key(name), found)
		ready := 0
		for _, c := range found.Status.ContainerStatuses {
			if c.Ready {
				ready++
			}
		}
		return ready == len(addresses), fmt.Sprintf("%d answers", ready), err
	}))
}
