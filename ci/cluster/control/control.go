// Package control runs the control plane: etcd, API server, controller manager and scheduler, in the host's
// namespaces and reachable from there and from the nodes only.
package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"virtstack.io/virtstack/ci/cluster/api"
	"virtstack.io/virtstack/ci/cluster/await"
	"virtstack.io/virtstack/ci/cluster/config"
	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/pki"
	"virtstack.io/virtstack/ci/cluster/proc"
)

// names in the order of start.
var names = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// auditMegabytes is the size at which the audit log is turned over: far more than a test run writes, so that who counts
// API writes reads one file.
const auditMegabytes = "1024"

func pidFile(d layout.Dir, name string) string { return filepath.Join(d.Run(), name+".pid") }

func auditPolicy(d layout.Dir) string { return filepath.Join(d.Run(), "audit.yaml") }

// Dead returns the names of the control plane's processes that aren't running.
func Dead(d layout.Dir) []string {
	var dead []string
	for _, name := range names {
		if id, ok := proc.Load(pidFile(d, name)); !ok || !id.Alive() {
			dead = append(dead, name)
		}
	}
	return dead
}

// Start starts everything and returns once the API server is ready.
func Start(ctx context.Context, d layout.Dir) error {
	if err := pki.ControlPlane(d, time.Now()); err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	policy, err := config.Audit()
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(d.Run(), 0o755), os.WriteFile(auditPolicy(d), policy, 0o644)); err != nil {
		return err
	}
	flags := arguments(d)
	for _, name := range names {
		if err := start(d, name, flags[name]); err != nil {
			return err
		}
		if name != "kube-apiserver" {
			continue
		}
		if err := ready(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func start(d layout.Dir, name string, flags []string) error {
	_, err := proc.Daemon{
		Args: append([]string{d.Program(name)}, flags...), Dir: d.PKI(),
		Log: d.Log(name), PIDFile: pidFile(d, name), State: d.State(),
	}.Start()
	return err
}

// ready waits for the API server, and stops waiting when it or etcd ends.
func ready(ctx context.Context, d layout.Dir) error {
	c, err := api.New(d)
	if err != nil {
		return err
	}
	return await.True(ctx, "the API server", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		for _, name := range names[:2] {
			if id, ok := proc.Load(pidFile(d, name)); !ok || !id.Alive() {
				return false, fmt.Errorf("%s ended; its log %s ends so:\n%s", name, d.Log(name), tail(d.Log(name)))
			}
		}
		return c.Ready(ctx), nil
	})
}

func tail(file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// Stop ends every process of the control plane. The API server would wait a minute for open watches; its state is
// etcd's, so it is killed.
func Stop(ctx context.Context, d layout.Dir) error {
	var errs []error
	for _, name := range slices.Backward(names) {
		file := pidFile(d, name)
		id, ok := proc.Load(file)
		if !ok {
			continue
		}
		sig := syscall.SIGKILL
		if name == "etcd" {
			sig = syscall.SIGTERM
		}
		errs = append(errs, id.End(ctx, sig, 10*time.Second), os.Remove(file))
	}
	return errors.Join(errs...)
}
