package guest

import (
	"context"
	"fmt"
	"net"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/nodeagent/network"
	"virtstack.io/virtstack/nodeagent/podfs"
)

// Local reaches launchers and their network namespaces on this node.
type Local struct{ Pods *podfs.Pods }

// Dial connects to one of the sockets of a Pod's launcher, after proof that it is that Pod's.
func (l Local) Dial(ctx context.Context, pod types.UID, socket string) (net.Conn, error) {
	conn, process, err := l.reach(ctx, pod, socket)
	if err != nil {
		return nil, err
	}
	process.Close()
	return conn, nil
}

// Prepare prepares the network namespace of the Pod's launcher.
func (l Local) Prepare(ctx context.Context, pod *k8sv1.Pod, vmi *v1.VirtualMachineInstance) ([]*guestv1.Interface, error) {
	ports, err := network.Layout(vmi)
	if err != nil || len(ports) == 0 {
		return nil, err
	}
	conn, process, err := l.reach(ctx, pod.UID, guestv1.GuestSocket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer process.Close()
	ns, err := process.NetworkNamespace()
	if err != nil {
		return nil, fmt.Errorf("opening the Pod's network namespace: %w", err)
	}
	defer ns.Close()
	var ips []string
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return network.Prepare(ns, network.Addresses(ips), ports)
}

func (l Local) reach(ctx context.Context, pod types.UID, socket string) (*net.UnixConn, *podfs.Process, error) {
	run, err := l.Pods.EmptyDir(pod, guestv1.RunVolume)
	if err != nil {
		return nil, nil, err
	}
	defer run.Close()
	conn, err := run.Dial(ctx, socket)
	if err != nil {
		return nil, nil, err
	}
	process, err := podfs.Peer(conn, pod, guestv1.User)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, process, nil
}
