package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/ci/cluster/config"
	"virtstack.io/virtstack/ci/cluster/host"
	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/pki"
	"virtstack.io/virtstack/ci/cluster/proc"
)

func pidFile(d layout.Dir, n layout.Node) string {
	return filepath.Join(d.Run(), n.Name()+".pid")
}

// Running returns the nodes whose process 1 is alive, with it.
func Running(d layout.Dir) map[layout.Node]proc.ID {
	found := map[layout.Node]proc.ID{}
	for i := 1; i <= layout.MaxNodes; i++ {
		n := d.Node(i)
		if id, ok := proc.Load(pidFile(d, n)); ok && id.Alive() {
			found[n] = id
		}
	}
	return found
}

// Start starts a node and returns while its containerd is starting; its other programs start once Load was called.
// program is the path of this one.
func Start(ctx context.Context, d layout.Dir, n layout.Node, program string) error {
	if err := errors.Join(Stop(ctx, d, n), pki.Node(d, n, time.Now()), config.WriteNode(n)); err != nil {
		return err
	}
	for _, dir := range append([]string{"/config"}, own...) {
		if err := os.MkdirAll(n.Data()+dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(n.Loaded()); err != nil {
		return err
	}
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := dropLogs(d, n); err != nil {
		return err
	}
	told := spec{n.Name(), n.IP(), d.Bin(), n.Config(), d.Logs(), n.Data(), string(resolv)}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close() // an empty spec ends a node that was not finished
	id, err := proc.Daemon{
		Args: []string{program, "node-init"}, Dir: "/", Log: d.Log(n.Name() + "-init"), PIDFile: pidFile(d, n), State: d.State(),
		Attr:  syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWPID},
		Files: []*os.File{r},
	}.Start()
	r.Close()
	if err != nil {
		return err
	}
	if err := admit(n, id); err != nil {
		return fmt.Errorf("starting %s: %w", n.Name(), err)
	}
	return json.NewEncoder(w).Encode(told)
}

// admit puts the node's process 1 into its control groups and onto the network.
func admit(n layout.Node, id proc.ID) error {
	groups, err := host.MakeGroups(n.Group())
	if err != nil {
		return err
	}
	if err := host.EnterGroups(groups, id.PID); err != nil {
		return err
	}
	return host.Connect(n, id.PID)
}

// dropLogs removes the logs of the node's earlier life.
func dropLogs(d layout.Dir, n layout.Node) error {
	logs, err := filepath.Glob(filepath.Join(d.Logs(), n.Name()+"-*.log"))
	if err != nil {
		return err
	}
	for _, l := range logs {
		err = errors.Join(err, os.Remove(l))
	}
	return err
}

// Stop ends a node at once, as if its power failed, and removes what it leaves on the host. It tries everything even
// where a step fails; a node that isn't there is success.
func Stop(ctx context.Context, d layout.Dir, n layout.Node) error {
	var errs []error
	if id, ok := proc.Load(pidFile(d, n)); ok {
		errs = append(errs, id.End(ctx, syscall.SIGKILL, 15*time.Second))
	}
	errs = append(errs, host.RemoveLink(n.Link()))
	groups, err := host.Groups()
	errs = append(errs, err)
	for _, g := range groups {
		if filepath.Base(g) == n.Group() {
			errs = append(errs, host.RemoveGroup(ctx, g))
		}
	}
	if err := os.Remove(pidFile(d, n)); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// LastLines returns the end of a node's own log, for an error.
func LastLines(d layout.Dir, n layout.Node) string {
	raw, err := os.ReadFile(d.Log(n.Name() + "-init"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}
