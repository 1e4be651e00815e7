package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"virtstack.io/virtstack/ci/cluster/control"
	"virtstack.io/virtstack/ci/cluster/host"
	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/node"
	"virtstack.io/virtstack/ci/cluster/proc"
)

func down(ctx context.Context, d layout.Dir, out io.Writer, purge bool) error {
	return locked(d, out, func() error {
		begun := time.Now()
		if err := clear(ctx, d); err != nil {
			return err
		}
		if purge {
			if err := drop(d); err != nil {
				return fmt.Errorf("dropping the cluster's state: %w", err)
			}
		}
		fmt.Fprintf(out, "the cluster is down, after %.1f s\n", time.Since(begun).Seconds())
		return nil
	})
}

// clear stops whatever runs and takes away what it left on this machine, in whatever state that is. It tries every
// step even where one fails.
func clear(ctx context.Context, d layout.Dir) error {
	var errs []error
	loops, err := host.Loops(d.State()) // while their files still have names
	errs = append(errs, err)
	for i := 1; i <= layout.MaxNodes; i++ {
		errs = append(errs, node.Stop(ctx, d, d.Node(i)))
	}
	errs = append(errs, control.Stop(ctx, d), endStrays(ctx, d))
	for _, l := range loops {
		errs = append(errs, l.Detach())
	}
	for _, name := range host.Links() {
		errs = append(errs, host.RemoveLink(name))
	}
	return errors.Join(append(errs, sysctls(d).Restore(), os.RemoveAll(d.Run()))...)
}

// endStrays ends processes of this cluster whose pid files were lost.
func endStrays(ctx context.Context, d layout.Dir) error {
	strays, err := proc.Marked(d.State())
	errs := []error{err}
	for _, id := range strays {
		errs = append(errs, id.End(ctx, syscall.SIGKILL, 10*time.Second))
	}
	return errors.Join(errs...)
}

// drop removes everything but programs and images.
func drop(d layout.Dir) error {
	errs := []error{}
	for _, path := range []string{d.Etcd(), d.PKI(), d.Logs(), d.Kubeconfig(), d.AuditLog()} {
		errs = append(errs, os.RemoveAll(path))
	}
	for i := 1; i <= layout.MaxNodes; i++ {
		errs = append(errs, os.RemoveAll(d.Node(i).Data()))
	}
	return errors.Join(errs...)
}
