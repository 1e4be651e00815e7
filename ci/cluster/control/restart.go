package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/proc"
)

// ErrUnknown says that the control plane has no program of that name.
var ErrUnknown = errors.New("no program of the control plane")

// Restart kills one of the control plane's programs as a crash would, starts it again, and returns once the API server is
// ready. One that doesn't run is started.
func Restart(ctx context.Context, d layout.Dir, name string) error {
	if err := kill(ctx, d, name); err != nil {
		return err
	}
	if err := start(d, name, arguments(d)[name]); err != nil {
		return err
	}
	return ready(ctx, d)
}

func kill(ctx context.Context, d layout.Dir, name string) error {
	if !slices.Contains(names, name) {
		return fmt.Errorf("%q: %w: want one of %s", name, ErrUnknown, strings.Join(names, ", "))
	}
	id, ok := proc.Load(pidFile(d, name))
	if !ok {
		return nil
	}
	return id.End(ctx, syscall.SIGKILL, 10*time.Second)
}
