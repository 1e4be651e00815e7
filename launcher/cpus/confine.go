package cpus

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// walks is how often threads are looked for that were made meanwhile.
const walks = 4

// Confine keeps every thread of the processes that this one sees, which are the Pod's, to some CPUs; what they start
// starts there too. It is for the time before there is a guest.
func Confine(ids []uint) error { return keep("/proc/[0-9]*/task/[0-9]*", ids) }

// keep does so with the threads that a pattern finds in /proc.
func keep(pattern string, ids []uint) error {
	var want unix.CPUSet
	for _, id := range ids {
		want.Set(int(id))
	}
	if want.Count() == 0 {
		return errors.New("keeping the launcher to some CPUs: none are given")
	}
	for range walks {
		moved, err := move(pattern, &want)
		if err != nil || moved == 0 {
			return err
		}
	}
	return nil
}

func move(pattern string, want *unix.CPUSet) (moved int, err error) {
	tasks, _ := filepath.Glob(pattern) // which is right
	for _, task := range tasks {
		tid, _ := strconv.Atoi(filepath.Base(task))
		var have unix.CPUSet
		if unix.SchedGetaffinity(tid, &have) != nil || have == *want {
			continue // it has ended, or is there
		}
		if e := unix.SchedSetaffinity(tid, want); e != nil && !errors.Is(e, unix.ESRCH) {
			return moved, fmt.Errorf("keeping thread %d to some CPUs: %w", tid, e)
		}
		moved++
	}
	return moved, nil
}
