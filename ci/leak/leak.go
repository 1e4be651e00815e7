// Package leak finds what a test leaves behind: goroutines and open files.
package leak

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// patience is how long what has been closed may take to be gone.
const patience = 5 * time.Second

// Check fails the test if, after its other cleanups, more goroutines or open files are left than there are now. It has
// to be called before anything else is set up. Tests that run beside others can't be checked.
func Check(t testing.TB) {
	t.Helper()
	routines, files := runtime.NumGoroutine(), open(t)
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for late := time.Now().Add(patience); ; <-tick.C {
			nowRoutines, nowFiles := runtime.NumGoroutine(), open(t)
			if nowRoutines <= routines && nowFiles <= files {
				return
			}
			if time.Now().After(late) {
				stacks := make([]byte, 1<<20)
				t.Errorf("%d goroutines and %d open files are left, there were %d and %d before:\n%s",
					nowRoutines, nowFiles, routines, files, stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

// open counts open files. The first count opens what Go keeps for itself.
func open(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
