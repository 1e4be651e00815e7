// Package podfs is the node agent's only way into a Pod's directory and to a Pod's processes. What lies there belongs
// to a tenant, who may put a link or another file in place of anything at any moment. So nothing is ever reached by a
// path string: a directory is opened once, from the kubelet's own, with every link on the way refused, and what is in
// it is opened from that descriptor, looked at, and used through the descriptor that was looked at.
package podfs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// ErrNotSocket is returned by Dial where the name is there but isn't a unix socket: a launcher makes no such thing.
var ErrNotSocket = errors.New("not a unix socket")

// Pods is the kubelet's directory of Pods, which holds one directory per Pod, named by its UID.
type Pods struct{ dir *os.File }

// Open opens the kubelet's directory of Pods, such as /var/lib/kubelet/pods. The path is the administrator's.
func Open(path string) (*Pods, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return &Pods{os.NewFile(uintptr(fd), path)}, nil
}

// Close lets go of the directory.
func (p *Pods) Close() error { return p.dir.Close() }

// Dir is one volume of one Pod.
type Dir struct{ dir *os.File }

// EmptyDir opens an emptyDir volume of a Pod. It fails with an error for which errors.Is(err, fs.ErrNotExist) holds
// where the kubelet has not made it yet, and with ELOOP where a link is in the way.
func (p *Pods) EmptyDir(pod types.UID, volume string) (*Dir, error) {
	for _, part := range []string{string(pod), volume} {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "/\x00") {
			return nil, fmt.Errorf("opening volume %q of Pod %q: not a name: %w", volume, pod, unix.EINVAL)
		}
	}
	f, err := openBeneath(p.dir, string(pod)+"/volumes/kubernetes.io~empty-dir/"+volume, unix.O_DIRECTORY)
	if err != nil {
		return nil, fmt.Errorf("opening volume %q of Pod %s: %w", volume, pod, err)
	}
	return &Dir{f}, nil
}

// Close lets go of the volume.
func (d *Dir) Close() error { return d.dir.Close() }

// Dial connects to a unix socket in the volume. The socket that was looked at is the one that is connected to,
// whatever its name has become meanwhile. The name may have several parts; none may be a link.
func (d *Dir) Dial(ctx context.Context, name string) (*net.UnixConn, error) {
	sock, err := openBeneath(d.dir, name, 0)
	if err != nil {
		return nil, fmt.Errorf("opening socket %s: %w", name, err)
	}
	defer sock.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(sock.Fd()), &st); err != nil {
		return nil, fmt.Errorf("looking at socket %s: %w", name, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("%s has mode %o: %w", name, st.Mode, ErrNotSocket)
	}
	// The entry in /proc leads to the inode that sock holds, not to its name; it also keeps the address under the 108
	// bytes that the kernel allows, which the kubelet's paths often exceed.
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d", sock.Fd()))
	if op := (*net.OpError)(nil); errors.As(err, &op) { // without the descriptor's number, which means nothing to anybody
		err = op.Err
	}
	if err != nil {
		return nil, fmt.Errorf("dialling socket %s: %w", name, err)
	}
	return conn.(*net.UnixConn), nil
}

// openBeneath opens a path below a directory with O_PATH. Links, also in the last part, "..", absolute paths and the
// magic links of /proc are refused by the kernel as it walks, so there is no moment between check and use.
func openBeneath(dir *os.File, path string, flags uint64) (*os.File, error) {
	how := unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | flags,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(int(dir.Fd()), path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil
		case errors.Is(err, unix.EINTR):
		default:
			return nil, &os.PathError{Op: "openat2", Path: path, Err: err}
		}
	}
}
