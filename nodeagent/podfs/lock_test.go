package podfs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// family starts a process with a child in the cgroup of a Pod and returns their numbers.
func family(t *testing.T, pod types.UID) (parent, child int) {
	t.Helper()
	dir := "/sys/fs/cgroup/pod" + string(pod)
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.procs"); err != nil { // version 1: any controller will do
		dir = "/sys/fs/cgroup/cpu/pod" + string(pod)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "echo $$ >"+dir+"/cgroup.procs; sleep 600 & echo $!; wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		end := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		var killed *exec.ExitError
		if err := cmd.Wait(); end != nil || !errors.As(err, &killed) {
			t.Errorf("ending the family: %v, %v", end, err)
		}
		for { // the child ends a moment later
			if err := os.Remove(dir); !errors.Is(err, syscall.EBUSY) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if child, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, child
}

func lockable(t *testing.T, number int) uint64 {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Prlimit(number, unix.RLIMIT_MEMLOCK, nil, &limit); err != nil {
		t.Fatal(err)
	}
	return limit.Cur
}

func hard(t *testing.T) uint64 {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil || limit.Max < 6<<20 {
		t.Fatalf("got %+v, %v, want at least 6 MiB", limit, err)
	}
	return limit.Max
}

// A launcher's libvirtd is its child, and starts QEMU: all of them may lock the guest's memory, and no other process.
func TestAFamilyMayLockMemory(t *testing.T) {
	pod := types.UID(fmt.Sprintf("lock-test-%d", os.Getpid()))
	parent, child := family(t, pod)
	for _, number := range []int{parent, child} {
		// The hard limit stays: to raise that takes a capability which tests may not have.
		low := unix.Rlimit{Cur: 1 << 20, Max: hard(t)}
		if err := unix.Prlimit(number, unix.RLIMIT_MEMLOCK, &low, nil); err != nil {
			t.Fatal(err)
		}
	}
	p, err := process(parent, pod)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, step := range []struct{ bytes, want uint64 }{{4 << 20, 4 << 20}, {2 << 20, 4 << 20}} {
		if err := p.LockMemory(pod, step.bytes); err != nil {
			t.Fatal(err)
		}
		for _, number := range []int{parent, child} {
			if got := lockable(t, number); got != step.want {
				t.Errorf("process %d may lock %d, want %d", number, got, step.want)
			}
		}
	}
	if err := p.LockMemory("another", 5<<20); !errors.Is(err, ErrForeign) || lockable(t, child) != 4<<20 {
		t.Errorf("a child of another Pod: got %v", err)
	}
}
