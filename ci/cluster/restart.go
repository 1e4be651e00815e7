package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"virtstack.io/virtstack/ci/cluster/control"
	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/node"
)

// restart kills a program of the control plane and starts it again. Those of a node come back by themselves.
func restart(ctx context.Context, d layout.Dir, out io.Writer, args []string) error {
	return locked(d, out, func() error {
		if len(node.Running(d)) == 0 {
			return fmt.Errorf("restarting %s: the cluster doesn't run: start it with up", args[0])
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		begun := time.Now()
		if err := control.Restart(ctx, d, args[0]); err != nil {
			return fmt.Errorf("restarting %s: %w", args[0], err)
		}
		fmt.Fprintf(out, "%s runs again, after %.1f s\n", args[0], time.Since(begun).Seconds())
		return nil
	})
}
