package podfs

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

const pod = types.UID("0f8b6a52-9a4c-4d5e-8f00-1c2d3e4f5a6b")

// volume makes the run directory of a Pod as the kubelet would, at a path that is too long for a socket address.
func volume(t *testing.T) (pods *Pods, run string) {
	t.Helper()
	root := filepath.Join(t.TempDir(), strings.Repeat("long", 25))
	run = filepath.Join(root, string(pod), "volumes/kubernetes.io~empty-dir/run")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	pods, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pods.Close() })
	return pods, run
}

// listen makes a socket whose every client is told name, and returns a short path to it.
func listen(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(name))
			c.Close()
		}
	}()
	return path
}

func dial(t *testing.T, pods *Pods, name string) (string, error) {
	t.Helper()
	dir, err := pods.EmptyDir(pod, "run")
	if err != nil {
		return "", err
	}
	defer dir.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	conn, err := dir.Dial(ctx, name)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	b := make([]byte, 64)
	n, err := conn.Read(b)
	return string(b[:n]), err
}

func TestASocketBehindALongPathIsReached(t *testing.T) {
	pods, run := volume(t)
	if err := os.Rename(listen(t, "launcher"), filepath.Join(run, "guest.sock")); err != nil {
		t.Fatal(err)
	}
	if got, err := dial(t, pods, "guest.sock"); got != "launcher" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// S11: whatever a tenant puts in place of a socket, of a directory or of the volume is refused.
func TestForgedNamesAreRefused(t *testing.T) {
	cri := listen(t, "container runtime")
	for name, tc := range map[string]struct {
		forge func(t *testing.T, run string) error
		dial  string
		want  error
	}{
		"a link to another socket": {func(_ *testing.T, run string) error {
			return os.Symlink(cri, filepath.Join(run, "x"))
		}, "x", unix.ELOOP},
		"a relative link": {func(_ *testing.T, run string) error {
			return errors.Join(os.Mkdir(filepath.Join(run, "d"), 0o755), os.Symlink("d", filepath.Join(run, "x")))
		}, "x", unix.ELOOP},
		"a link in place of a directory": {func(_ *testing.T, run string) error {
			return os.Symlink(filepath.Dir(cri), filepath.Join(run, "d"))
		}, "d/sock", unix.ELOOP},
		"a link in place of the volume": {func(_ *testing.T, run string) error {
			return errors.Join(os.Remove(run), os.Symlink(filepath.Dir(cri), run))
		}, "sock", unix.ENOTDIR},
		"a file": {func(_ *testing.T, run string) error {
			return os.WriteFile(filepath.Join(run, "x"), nil, 0o666)
		}, "x", ErrNotSocket},
		"a FIFO": {func(_ *testing.T, run string) error {
			return unix.Mkfifo(filepath.Join(run, "x"), 0o666)
		}, "x", ErrNotSocket},
		"a directory": {func(_ *testing.T, run string) error {
			return os.Mkdir(filepath.Join(run, "x"), 0o777)
		}, "x", ErrNotSocket},
		"a step up":        {func(*testing.T, string) error { return nil }, "../x", unix.EXDEV},
		"an absolute path": {func(*testing.T, string) error { return nil }, cri, unix.EXDEV},
		"nothing":          {func(*testing.T, string) error { return nil }, "x", fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			pods, run := volume(t)
			if err := tc.forge(t, run); err != nil {
				t.Fatal(err)
			}
			got, err := dial(t, pods, tc.dial)
			if err == nil || !errors.Is(err, tc.want) && !(tc.want == unix.ENOTDIR && errors.Is(err, unix.ELOOP)) {
				t.Errorf("got %q, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestNamesThatAreNotOnePartAreRefused(t *testing.T) {
	pods, _ := volume(t)
	for _, bad := range []string{"", ".", "..", "a/b", "../" + string(pod), "a\x00b"} {
		if d, err := pods.EmptyDir(types.UID(bad), "run"); err == nil {
			d.Close()
			t.Errorf("Pod %q was opened", bad)
		}
		if d, err := pods.EmptyDir(pod, bad); err == nil {
			d.Close()
			t.Errorf("volume %q was opened", bad)
		}
	}
}

// S11, the race: while a tenant swaps socket and link as fast as it can, a dial reaches the socket or fails.
func TestASwapBetweenCheckAndUseReachesNothingElse(t *testing.T) {
	pods, run := volume(t)
	sock, link, name := filepath.Join(run, "sock"), filepath.Join(run, "link"), filepath.Join(run, "guest.sock")
	if err := errors.Join(os.Rename(listen(t, "launcher"), sock), os.Symlink(listen(t, "container runtime"), link)); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			from := []string{sock, link}[i%2]
			unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, name, 0)
			unix.Renameat2(unix.AT_FDCWD, name, unix.AT_FDCWD, from, 0)
		}
	}()
	reached, refused := 0, 0
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && (reached < 50 || refused < 50); {
		switch got, err := dial(t, pods, "guest.sock"); {
		case got == "container runtime":
			t.Fatal("the link was followed")
		case err == nil:
			reached++
		default:
			refused++
		}
	}
	close(stop)
	<-stopped
	t.Logf("reached %d times, refused %d times", reached, refused)
	if reached == 0 || refused == 0 {
		t.Error("the race was not run: want both outcomes")
	}
}
