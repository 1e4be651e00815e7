package guest

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"sync"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/nodeagent/network"
)

// Networks is the Network of the Pods on this node.
type Networks struct {
	// Local reaches the launchers, whose network namespaces are the Pods'.
	Local Local

	mu          sync.Mutex
	advertisers map[types.UID]advertiser // by Pod; made again after a restart, nothing depends on it
}

type advertiser struct {
	vmi types.NamespacedName
	*network.Advertiser
}

// Prepare implements Network.
func (n *Networks) Prepare(ctx context.Context, pod *k8sv1.Pod, vmi *v1.VirtualMachineInstance) (facts []*guestv1.Interface, err error) {
	err = n.enter(ctx, pod, vmi, func(ns *os.File, own []netip.Addr, ports []network.Port) error {
		facts, err = network.Prepare(ns, own, ports)
		return err
	})
	return facts, err
}

// Advertise implements Network.
func (n *Networks) Advertise(ctx context.Context, pod *k8sv1.Pod, vmi *v1.VirtualMachineInstance) error {
	return n.enter(ctx, pod, vmi, func(ns *os.File, own []netip.Addr, ports []network.Port) error {
		a, err := network.Advertise(ns, own, ports)
		if err != nil {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if old, found := n.advertisers[pod.UID]; found {
			old.Close()
		}
		if n.advertisers == nil {
			n.advertisers = map[types.UID]advertiser{}
		}
		n.advertisers[pod.UID] = advertiser{types.NamespacedName{Namespace: vmi.Namespace, Name: vmi.Name}, a}
		return nil
	})
}

// Advertised implements Network.
func (n *Networks) Advertised(pod types.UID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, found := n.advertisers[pod]
	return found
}

// Keep implements Network. A socket that is left open would keep the Pod's namespace.
func (n *Networks) Keep(vmi types.NamespacedName, pods ...types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pod, a := range n.advertisers {
		if a.vmi == vmi && !slices.Contains(pods, pod) {
			a.Close()
			delete(n.advertisers, pod)
		}
	}
}

// enter calls do with the Pod's network namespace, addresses and ports, where the VMI has interfaces.
func (n *Networks) enter(ctx context.Context, pod *k8sv1.Pod, vmi *v1.VirtualMachineInstance, do func(*os.File, []netip.Addr, []network.Port) error) error {
	ports, err := network.Layout(vmi)
	if err != nil || len(ports) == 0 {
		return err
	}
	conn, process, err := n.Local.reach(ctx, pod.UID, guestv1.GuestSocket)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer process.Close()
	ns, err := process.NetworkNamespace()
	if err != nil {
		return fmt.Errorf("opening the Pod's network namespace: %w", err)
	}
	defer ns.Close()
	var ips []string
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return do(ns, network.Addresses(ips), ports)
}
