package launcher

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"syscall"
	"time"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// enterScript makes a root file system that was laid out look as it does in a Pod, and becomes the program. It is the
// first process of its own mount and process namespaces, so nothing of this is left on the machine.
const enterScript = `set -e
mount --make-rprivate /
cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp
user=$2
shift 2
exec chroot --userspec="$user:$user" . "$@"
`

// ending is how long a killed program may take to be gone with all that it started.
const ending = 10 * time.Second

// root is the image, laid out in a directory, and the user whom its program runs as.
type root struct {
	dir  string
	user int
}

// layOut extracts trees one over the other into a new directory beneath dir, which the caller has to remove.
func layOut(dir string, trees ...*rootfs.Tree) (root, error) {
	made, err := os.MkdirTemp(dir, "launcher-")
	if err != nil {
		return root{}, err
	}
	r := root{dir: made, user: guestv1.User}
	for _, t := range trees {
		if err := t.Extract(r.dir); err != nil {
			r.remove()
			return root{}, err
		}
	}
	return r, os.Chmod(r.dir, 0o755) // that of a temporary directory is for its owner only
}

func (r root) remove() { _ = os.RemoveAll(r.dir) } // what stays is in the cache directory

// run runs a program of the image as its user and as process 1, as in a Pod, and ends whatever it started. It
// needs root: for the mounts, which fill the directories that a container runtime fills, and to become that user.
func (r root) run(ctx context.Context, out, errs io.Writer, args ...string) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", enterScript, "sh", r.dir, strconv.Itoa(r.user)}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	cmd.WaitDelay = ending
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s within the image: %w", path.Base(args[0]), err)
	}
	return nil
}
