package realtime

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"virtstack.io/virtstack/machine/cpumask"
	"virtstack.io/virtstack/nodeagent/podfs"
)

// sleeper starts a thread of this process that waits until the test ends, and returns its number.
func sleeper(t *testing.T) int {
	tid, done := make(chan int), make(chan struct{})
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
		tid <- unix.Gettid()
		<-done
	}()
	t.Cleanup(func() { close(done) })
	return <-tid
}

func policy(t *testing.T, tid int) uint32 {
	t.Helper()
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		t.Fatal(err)
	}
	return attr.Policy
}

func TestVirtualCPUsInTheMaskComeFirst(t *testing.T) {
	first, second, other := sleeper(t), sleeper(t), sleeper(t)
	threads := Threads{Of: func(types.UID) ([]podfs.Thread, error) {
		return []podfs.Thread{{ID: first, Name: "CPU 0/TCG"}, {ID: second, Name: "CPU 1/KVM"}, {ID: other, Name: "IO iothread1"}}, nil
	}}
	mask, err := cpumask.Parse("0-3,^1")
	if err != nil {
		t.Fatal(err)
	}
	expect := func(behind bool) {
		t.Helper()
		if got, err := threads.Behind("pod", mask); err != nil || got != behind {
			t.Errorf("behind %v, %v; want %v", got, err, behind)
		}
	}
	expect(true)
	if err := threads.Prefer("pod", mask); err != nil {
		t.Fatal(err)
	}
	expect(false)
	if a, b, c := policy(t, first), policy(t, second), policy(t, other); a != unix.SCHED_FIFO || b != unix.SCHED_NORMAL || c != unix.SCHED_NORMAL {
		t.Errorf("policies %d, %d and %d", a, b, c)
	}
	mask = nil
	expect(true) // the second is asked for now
}

func TestNoThreads(t *testing.T) {
	for _, want := range []error{nil, errors.New("no /proc")} {
		threads := Threads{Of: func(types.UID) ([]podfs.Thread, error) { return nil, want }}
		if got, err := threads.Behind("pod", nil); got || !errors.Is(err, want) {
			t.Errorf("got %v, %v", got, err)
		}
	}
}

func TestNamesOfThreads(t *testing.T) {
	for name, want := range map[string]int{"CPU 0/KVM": 0, "CPU 12/TCG": 12, "CPU 4095/KVM": 4095, "CPU x/KVM": -1, "CPU 1": -1, "qemu-system-x86": -1, "CPU 1/SPICE": -1, "": -1} {
		id, ok := vcpu(name)
		if ok != (want >= 0) || ok && int(id) != want {
			t.Errorf("%q: %d, %v", name, id, ok)
		}
	}
}
