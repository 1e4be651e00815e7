//go:build libvirt

// The test of the real thing: needs /usr/sbin/libvirtd and /usr/bin/qemu-system-x86_64, so it runs inside the root
// filesystem of the launcher image. The build tag keeps it out of runs elsewhere; where it is set, a missing libvirtd
// fails.
package libvirt_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"virtstack.io/virtstack/launcher/child"
	"virtstack.io/virtstack/launcher/disk"
	"virtstack.io/virtstack/launcher/driver/drivertest"
	"virtstack.io/virtstack/launcher/driver/libvirt"
	"virtstack.io/virtstack/launcher/share"
)

func TestLibvirt(t *testing.T) {
	if err := child.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	drivertest.Run(t, func(t *testing.T) drivertest.Driver {
		dir, err := os.MkdirTemp("/tmp", "lv")
		if err != nil {
			t.Fatal(err)
		}
		d, err := libvirt.Open(t.Context(), libvirt.Options{Dir: dir, Log: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = d.Stop(t.Context()) // the guest may have ended, the daemon may be gone
			d.Close()
			_ = os.RemoveAll(dir)
		})
		kill := func(name string) func() { return func() { killAll(t, dir, name) } }
		return drivertest.Driver{Driver: d, KillDaemon: kill("libvirtd"), KillGuest: kill("qemu-system-x86"), Share: serve}
	})
}

// serve serves a directory by the virtiofsd of the image.
func serve(t *testing.T, dir string) string {
	t.Helper()
	s := &share.Server{Dir: dir, Log: os.Stderr}
	sockets, err := s.Serve(t.Context(), map[string]disk.Share{"config": {Dir: dir, ReadOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	return sockets["config"]
}

// killAll kills the processes of a name whose environment or command line names dir.
func killAll(t *testing.T, dir, name string) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, p := range procs {
		comm, _ := os.ReadFile(filepath.Join(p, "comm")) // it may have ended
		env, _ := os.ReadFile(filepath.Join(p, "environ"))
		args, _ := os.ReadFile(filepath.Join(p, "cmdline"))
		if !strings.HasPrefix(string(comm), name) || !strings.Contains(string(env)+string(args), dir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(p))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
			killed++
		}
	}
	if killed == 0 {
		t.Fatalf("no %s to kill", name)
	}
}
