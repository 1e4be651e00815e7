// Package layout names the files, addresses and links of the dev cluster. Everything the cluster makes lies in
// .cluster/ at the root of the checkout; its links and addresses are fixed, so one machine holds one cluster.
package layout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	// Bridge is the link that joins the nodes and the host; the host has HostIP on it.
	Bridge = "vsbr0"
	// HostIP is where etcd's clients excepted, everything reaches the control plane: nodes, Pods and the shell.
	HostIP = "172.30.0.1"
	// APIServer is the API server's URL.
	APIServer = "https://" + HostIP + ":6443"
	// EtcdURL is etcd's address for clients; only the host reaches it.
	EtcdURL = "http://127.0.0.1:2379"
	// EtcdPeerURL is etcd's address for peers, of which there are none.
	EtcdPeerURL = "http://127.0.0.1:2380"
	// ServiceCIDR is the range of Service addresses, ServiceAPI the API server's and ServiceDNS CoreDNS's among them.
	ServiceCIDR = "10.96.0.0/16"
	ServiceAPI  = "10.96.0.1"
	ServiceDNS  = "10.96.0.10"
	// PodCIDR is the range of all Pod addresses; each node has a /24 of it.
	PodCIDR = "10.244.0.0/16"
	// MaxNodes is how many nodes the addresses have room for.
	MaxNodes = 9
)

// Dir is the root of the checkout.
type Dir string

// Find returns the checkout that the working directory lies in. It fails outside of one.
func Find() (Dir, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "ci", "cluster", "go.mod")); err == nil {
			return Dir(dir), nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("looking for ci/cluster/go.mod upwards from the working directory: run this inside a checkout")
		}
		dir = filepath.Dir(dir)
	}
}

// Module is the directory of the cluster's Go module.
func (d Dir) Module() string { return filepath.Join(string(d), "ci", "cluster") }

// State holds everything that the cluster makes.
func (d Dir) State() string { return filepath.Join(string(d), ".cluster") }

func (d Dir) in(parts ...string) string {
	return filepath.Join(append([]string{d.State()}, parts...)...)
}

// Bin holds the programs, Program is the path of one.
func (d Dir) Bin() string                { return d.in("bin") }
func (d Dir) Program(name string) string { return d.in("bin", name) }

// PKI holds keys, certificates and the control plane's kubeconfigs.
func (d Dir) PKI() string { return d.in("pki") }

// Etcd is etcd's data directory.
func (d Dir) Etcd() string { return d.in("etcd") }

// Run holds what must be known to take a running cluster down: process ids, control groups, old sysctls.
func (d Dir) Run() string { return d.in("run") }

// Images holds the OCI archives that every node imports.
func (d Dir) Images() string { return d.in("images") }

// Logs holds the output of every process, emptied when that process is started anew.
func (d Dir) Logs() string { return d.in("logs") }

// Log is the log of one process.
func (d Dir) Log(name string) string { return d.in("logs", name+".log") }

// Kubeconfig is the administrator's kubeconfig.
func (d Dir) Kubeconfig() string { return d.in("kubeconfig") }

// AuditLog has one JSON object a line for every API write.
func (d Dir) AuditLog() string { return d.in("audit.log") }

// Lock is held by whoever brings the cluster up or down.
func (d Dir) Lock() string { return d.in("lock") }

// Node is what one node is called and where it is.
type Node struct {
	N   int // 1 to MaxNodes
	dir Dir
}

// Node returns the node with number n.
func (d Dir) Node(n int) Node { return Node{n, d} }

// Name is the node's name and hostname.
func (n Node) Name() string { return fmt.Sprintf("node%d", n.N) }

// IP is the node's address on the bridge.
func (n Node) IP() string { return fmt.Sprintf("172.30.0.%d", 10+n.N) }

// PodCIDR is the range of the addresses of the node's Pods.
func (n Node) PodCIDR() string { return fmt.Sprintf("10.244.%d.0/24", n.N) }

// Link is the host's end of the node's veth pair.
func (n Node) Link() string { return fmt.Sprintf("vsnode%d", n.N) }

// Group is the name of the node's control group in each hierarchy.
func (n Node) Group() string { return GroupPrefix + n.Name() }

// GroupPrefix starts the name of every node's control group.
const GroupPrefix = "virtstack-"

// Data holds the node's own /var/lib, /var/log and /opt.
func (n Node) Data() string { return n.dir.in(n.Name()) }

// Config holds the configuration that the node's programs read.
func (n Node) Config() string { return filepath.Join(n.Data(), "config") }

// Imported records the images that the node's containerd has.
func (n Node) Imported() string { return filepath.Join(n.Data(), "imported.json") }

// Loaded is written when the node has its images; the node's kubelet starts then.
func (n Node) Loaded() string { return filepath.Join(n.Config(), LoadedName) }

// LoadedName is that file's name in the node's configuration directory.
const LoadedName = "loaded"
