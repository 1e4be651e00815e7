// Command multinet is a CNI plugin for tests: it attaches a Pod to the cluster's own network and to those that the Pod's
// annotations name, and writes back what it did. It keeps to the contract by which Multus is known to users and to
// virtstack, in as much as tests need of it: the annotations k8s.v1.cni.cncf.io/networks and
// v1.multus-cni.io/default-network, NetworkAttachmentDefinitions, and k8s.v1.cni.cncf.io/network-status.
package main

import (
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
)

func main() {
	nothing := func(*skel.CmdArgs) error { return nil }
	skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: nothing, GC: nothing, Status: nothing},
		version.PluginSupports("0.3.1", "0.4.0", "1.0.0", "1.1.0"), "multinet: more than one network for a Pod, in tests")
}
