package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"virtstack.io/virtstack/ci/cluster/layout"
)

// locked runs do while nobody else brings the cluster up or down; it waits for whoever does.
func locked(d layout.Dir, out io.Writer, do func() error) error {
	if err := os.MkdirAll(d.State(), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(d.Lock(), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer f.Close() // which unlocks
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		fmt.Fprintln(out, "waiting for another run of this program to end")
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("locking %s: %w", d.Lock(), err)
	}
	return do()
}
