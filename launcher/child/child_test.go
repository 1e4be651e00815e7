package child_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"virtstack.io/virtstack/launcher/child"
)

func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_TEST") {
	case "orphan": // leaves a process behind, as libvirtd does, and tells its number
		c := exec.Command("/proc/self/exe")
		c.Env = []string{"CHILD_TEST=brief"}
		if err := c.Start(); err != nil {
			os.Exit(9)
		}
		fmt.Println(c.Process.Pid)
		os.Exit(7)
	case "brief":
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func helper(mode string) *exec.Cmd {
	c := exec.Command("/proc/self/exe")
	c.Env = []string{"CHILD_TEST=" + mode}
	return c
}

// Every child gives its status to the one who waits for it, and no orphan stays a zombie.
func TestOrphansAreTakenAndChildrenAreNot(t *testing.T) {
	if err := child.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	orphans := make(chan string, 20)
	for range cap(orphans) {
		all.Go(func() {
			c := helper("orphan")
			var out strings.Builder
			c.Stdout = &out
			wait, err := child.Start(c)
			if err != nil {
				t.Error(err)
				return
			}
			if err := wait(); c.ProcessState.ExitCode() != 7 {
				t.Errorf("got %v, want exit status 7", err)
			}
			orphans <- strings.TrimSpace(out.String())
		})
	}
	all.Wait()
	close(orphans)
	for pid := range orphans {
		waitGone(t, "/proc/"+pid)
	}
}

func waitGone(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return
		}
	}
	t.Fatalf("%s is still there", path)
}

func TestOutputTellsWhatACommandSaid(t *testing.T) {
	out, err := child.Output(exec.Command("/bin/sh", "-c", "echo yes"))
	if err != nil || string(out) != "yes\n" {
		t.Errorf("got %q, %v", out, err)
	}
	_, err = child.Output(exec.Command("/bin/sh", "-c", "echo no room >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3: no room") {
		t.Errorf("got %v, want the status and what was said", err)
	}
}
