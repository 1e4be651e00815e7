// Package realtime puts the threads of guests' virtual CPUs before all else that wants to run where they do. A launcher
// has no right to: who runs so may keep a CPU from everybody, so it is done for Pods with CPUs of their own alone.
package realtime

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/machine/cpumask"
	"virtstack.io/virtstack/nodeagent/podfs"
)

// priority is the lowest of those that run before all ordinary threads.
const priority = 1

// Threads are those of launchers on this node.
type Threads struct {
	// Of returns a Pod's.
	Of func(pod types.UID) ([]podfs.Thread, error)
}

// OfPods are those that the kernel counts to Pods.
var OfPods = Threads{Of: func(pod types.UID) ([]podfs.Thread, error) { return podfs.Threads(pod, guestv1.User) }}

// Behind tells whether a virtual CPU in the mask of a Pod's guest has others before it; a guest that doesn't run hasn't.
func (t Threads) Behind(pod types.UID, mask cpumask.Mask) (bool, error) {
	behind, err := t.behind(pod, mask)
	return len(behind) > 0, err
}

// Prefer puts them first.
func (t Threads) Prefer(pod types.UID, mask cpumask.Mask) error {
	behind, err := t.behind(pod, mask)
	if err != nil {
		return err
	}
	for _, tid := range behind {
		attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: priority}
		if err := unix.SchedSetAttr(tid, &attr, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("running thread %d before others: %w", tid, err)
		}
	}
	return nil
}

func (t Threads) behind(pod types.UID, mask cpumask.Mask) ([]int, error) {
	threads, err := t.Of(pod)
	if err != nil {
		return nil, fmt.Errorf("looking for the guest's threads: %w", err)
	}
	var out []int
	for _, thread := range threads {
		id, ok := vcpu(thread.Name)
		if !ok || !mask.Has(id) {
			continue
		}
		attr, err := unix.SchedGetAttr(thread.ID, 0)
		switch {
		case errors.Is(err, unix.ESRCH): // it has ended
		case err != nil:
			return nil, fmt.Errorf("asking when thread %d runs: %w", thread.ID, err)
		case attr.Policy != unix.SCHED_FIFO || attr.Priority != priority:
			out = append(out, thread.ID)
		}
	}
	return out, nil
}

// vcpu returns the number of the virtual CPU that a thread of that name runs; source: QEMU names them CPU 0/KVM or
// CPU 0/TCG.
func vcpu(name string) (id uint, ok bool) {
	var accelerator string
	n, err := fmt.Sscanf(name, "CPU %d/%s", &id, &accelerator)
	return id, err == nil && n == 2 && (accelerator == "KVM" || accelerator == "TCG")
}
