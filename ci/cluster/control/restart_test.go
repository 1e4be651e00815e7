package control

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/proc"
)

// checkout returns one whose programs only wait.
func checkout(t *testing.T) layout.Dir {
	t.Helper()
	d := layout.Dir(t.TempDir())
	for _, dir := range []string{d.Bin(), d.PKI(), d.Run()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		if err := os.WriteFile(d.Program(name), []byte("#!/bin/sh\nexec sleep 300\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := Stop(context.Background(), d); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestOneProgramIsRestartedAndTheOthersAreLeft(t *testing.T) {
	d := checkout(t)
	before := map[string]proc.ID{}
	for _, name := range names {
		if err := start(d, name, nil); err != nil {
			t.Fatal(err)
		}
		before[name], _ = proc.Load(pidFile(d, name))
	}
	// These programs are no API server, so that there is nothing to wait for.
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := Restart(ctx, d, "kube-scheduler")
	if err == nil {
		t.Error("an API server that never answers is ready")
	}
	for _, name := range names {
		id, ok := proc.Load(pidFile(d, name))
		if !ok || !id.Alive() || (id == before[name]) == (name == "kube-scheduler") {
			t.Errorf("%s: was %v, is %v, alive %t", name, before[name], id, id.Alive())
		}
	}
	if before["kube-scheduler"].Alive() {
		t.Error("the old one runs still")
	}
}

func TestOnlyTheControlPlanesProgramsAreRestarted(t *testing.T) {
	err := Restart(t.Context(), checkout(t), "containerd")
	if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("got %v", err)
	}
}
