package podfs

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// maxFamily is the most processes that a launcher and its children can be: what is more isn't ours.
const maxFamily = 64

// LockMemory lets the process and its children, each after proof that it is the Pod's, lock that many bytes of memory, and
// what they start later. A limit that is higher stays. Without it QEMU, which has no capability, can't have a device of
// the node reach the guest's memory.
func (p *Process) LockMemory(pod types.UID, bytes uint64) error {
	number, err := strconv.Atoi(filepath.Base(p.dir.Name()))
	if err != nil {
		return fmt.Errorf("reading the number of %s: %w", p.dir.Name(), err)
	}
	left := maxFamily
	return p.lock(number, pod, bytes, &left)
}

func (p *Process) lock(number int, pod types.UID, bytes uint64, left *int) error {
	if *left--; *left < 0 {
		return fmt.Errorf("the launcher has more than %d processes", maxFamily)
	}
	var now unix.Rlimit
	if err := unix.Prlimit(number, unix.RLIMIT_MEMLOCK, nil, &now); err != nil {
		return fmt.Errorf("asking what process %d may lock: %w", number, err)
	}
	if now.Cur < bytes || now.Max < bytes {
		wanted := unix.Rlimit{Cur: max(now.Cur, bytes), Max: max(now.Max, bytes)}
		if err := unix.Prlimit(number, unix.RLIMIT_MEMLOCK, &wanted, nil); err != nil {
			return fmt.Errorf("letting process %d lock %d bytes of memory: %w", number, bytes, err)
		}
	}
	children, err := p.children()
	if err != nil {
		return err
	}
	for _, child := range children {
		c, err := process(child, pod)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return err
		}
		err = c.lock(child, pod, bytes, left)
		c.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// children returns the numbers of the processes that the process has started, by whichever of its threads.
func (p *Process) children() ([]int, error) {
	tasks, err := p.open("task")
	if err != nil {
		return nil, err
	}
	defer tasks.Close()
	threads, err := tasks.Readdirnames(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("listing threads: %w", err)
	}
	var found []int
	for _, thread := range threads {
		list, err := p.open("task/" + thread + "/children")
		if errors.Is(err, unix.ENOENT) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		raw, err := io.ReadAll(io.LimitReader(list, 64<<10))
		list.Close()
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return nil, fmt.Errorf("listing children: %w", err)
		}
		for _, number := range strings.Fields(string(raw)) {
			if n, err := strconv.Atoi(number); err == nil {
				found = append(found, n)
			}
		}
	}
	return found, nil
}
