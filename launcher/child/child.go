// Package child starts processes for process 1 of a container, which also inherits every orphan (libvirtd detaches
// QEMU, so QEMU is one) and must take their exit statuses: a QEMU that is left a zombie looks alive to libvirt. It takes
// those of orphans only, never of a process that somebody waits for.
package child

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// own are the processes that were started here and are still waited for.
var own = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// Adopt makes this process the parent of orphans among its descendants, as process 1 is anyway, and takes their exit
// statuses until ctx ends. Processes must from then on be started through this package alone.
func Adopt(ctx context.Context) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the parent of orphans: %w", err)
	}
	exits := make(chan os.Signal, 1)
	signal.Notify(exits, unix.SIGCHLD)
	go func() {
		defer signal.Stop(exits)
		for {
			select {
			case <-exits:
				reap()
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// Start starts cmd. The caller must call wait once; it returns what cmd.Wait returns.
func Start(cmd *exec.Cmd) (wait func() error, err error) {
	own.Lock()
	defer own.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	pid := cmd.Process.Pid
	own.pids[pid] = true
	return func() error {
		err := cmd.Wait()
		own.Lock()
		delete(own.pids, pid)
		own.Unlock()
		reap() // orphans that ended behind this one
		return err
	}, nil
}

// Output runs a command and returns what it wrote to its standard output and, in the error, the last of what it wrote
// to its standard error.
func Output(cmd *exec.Cmd) ([]byte, error) {
	var out, errs tail
	cmd.Stdout, cmd.Stderr = &out, &errs
	wait, err := Start(cmd)
	if err != nil {
		return nil, err
	}
	if err := wait(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, errs.text())
	}
	return out.b, nil
}

// reap takes the statuses of ended orphans. The kernel offers ended children one at a time; when it offers one that is
// waited for, the rest have to be offered again after that wait.
func reap() {
	own.Lock()
	defer own.Unlock()
	for {
		pid := ended()
		if pid == 0 || own.pids[pid] {
			return
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil {
			return
		}
	}
}

// siginfo is the start of the kernel's siginfo_t for SIGCHLD on 64-bit Linux.
type siginfo struct {
	signo, errno, code, _ int32
	pid                   int32
	_                     [108]byte
}

var _ = [1]byte{}[unsafe.Sizeof(siginfo{})-unsafe.Sizeof(unix.Siginfo{})] // the same size, or this doesn't compile

// ended returns the process id of a child that has ended, and leaves its status to be taken; 0: there is none.
func ended() int {
	var info siginfo
	err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil {
		return 0
	}
	return int(info.pid)
}
