// Package node runs a node of the cluster: a process tree with mount, network, UTS, pid and cgroup namespaces of its
// own. So each path, port, socket and control group in it is the usual one, Pods with hostPID see only that node, and
// the end of its process 1 is the end of every process, mount and link in it, as if its power had failed.
package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// spec is what the node's process 1 is told.
type spec struct {
	Name, IP                string
	Bin, Config, Logs, Data string // directories of the host
	Resolv                  string // content of /etc/resolv.conf
}

// specEnv carries the spec over the second exec of Init.
const specEnv = "VIRTSTACK_NODE"

// Init is the node's process 1. It returns only with an error. It runs twice: first in the host's cgroup namespace,
// waiting until it was moved into the node's control groups and the network is there; then in a cgroup namespace
// whose root these groups are.
func Init() error {
	if raw, ok := os.LookupEnv(specEnv); ok {
		var s spec
		if err := json.Unmarshal([]byte(raw), &s); err != nil {
			return fmt.Errorf("reading %s: %w", specEnv, err)
		}
		if err := os.Unsetenv(specEnv); err != nil {
			return err
		}
		return s.run()
	}
	in := os.NewFile(3, "spec")
	if in == nil {
		return errors.New("no spec on descriptor 3: \"up\" runs this, people don't")
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("reading the spec: %w", err)
	}
	if len(raw) == 0 {
		return errors.New("the spec is empty: what started this node gave up")
	}
	in.Close()
	runtime.LockOSThread() // the namespace is one thread's; exec leaves that one alone
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("making a cgroup namespace: %w", err)
	}
	return syscall.Exec("/proc/self/exe", []string{"cluster", "node-init"}, append(os.Environ(), specEnv+"="+string(raw)))
}

// run is process 1 in its final namespaces.
func (s spec) run() error {
	if err := s.mount(); err != nil {
		return fmt.Errorf("mounting: %w", err)
	}
	if err := s.boot(); err != nil {
		return fmt.Errorf("booting: %w", err)
	}
	return s.supervise()
}
