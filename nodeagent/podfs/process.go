package podfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// ErrForeign is returned for a process that is not proven to be one of the Pod.
var ErrForeign = errors.New("not a process of the Pod")

// Process is a process of a Pod, held by its directory in /proc: a later process that is given the same number is
// never mistaken for it.
type Process struct{ dir *os.File }

// Peer returns the process that listens at the other end of a connection, after proof that the kernel counts it to the
// Pod's cgroup and that it runs as uid. The process is the one that called listen, so it is past the moment at which
// a container's first process is in the Pod's cgroup and still in the node's namespaces.
func Peer(conn *net.UnixConn, pod types.UID, uid uint32) (*Process, error) {
	cred, err := credentials(conn)
	if err != nil {
		return nil, fmt.Errorf("asking for the peer's credentials: %w", err)
	}
	if cred.Uid != uid {
		return nil, fmt.Errorf("peer runs as uid %d, want %d: %w", cred.Uid, uid, ErrForeign)
	}
	if cred.Pid <= 0 {
		return nil, fmt.Errorf("peer is in another pid namespace: %w", ErrForeign)
	}
	return process(int(cred.Pid), pod)
}

func process(pid int, pod types.UID) (*Process, error) {
	path := "/proc/" + strconv.Itoa(pid)
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	p := &Process{os.NewFile(uintptr(fd), path)}
	if err := p.prove(pod); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Process) prove(pod types.UID) error {
	f, err := p.open("cgroup")
	if err != nil {
		return err
	}
	defer f.Close()
	const plenty = 64 << 10 // a dozen lines of paths
	raw, err := io.ReadAll(io.LimitReader(f, plenty))
	if err != nil {
		return fmt.Errorf("reading cgroups: %w", err)
	}
	if got := podOf(raw); got != pod {
		return fmt.Errorf("process %s is in the cgroup of Pod %q, want %q: %w", p.dir.Name(), got, pod, ErrForeign)
	}
	return nil
}

// Close lets go of the process, which goes on.
func (p *Process) Close() error { return p.dir.Close() }

// NetworkNamespace opens the process's network namespace, which stays while the file is open.
func (p *Process) NetworkNamespace() (*os.File, error) { return p.open("ns/net") }

// open opens an entry of the process's directory, which is the kernel's and not a tenant's: ns/net is a magic link.
func (p *Process) open(name string) (*os.File, error) {
	fd, err := unix.Openat(int(p.dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "openat", Path: p.dir.Name() + "/" + name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func credentials(conn *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	ctlErr := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(ctlErr, err)
}

// podOf returns the UID of the Pod that a /proc/PID/cgroup names, "" where none or more than one is named. The kubelet
// names a Pod's cgroup pod<uid>, or with its systemd driver …-pod<uid, dashes as underscores>.slice; what a container
// may make lies deeper, so the first such part of each path decides.
func podOf(cgroups []byte) types.UID {
	var found types.UID
	for line := range bytes.Lines(cgroups) {
		_, rest, _ := strings.Cut(string(bytes.TrimSuffix(line, []byte("\n"))), ":")
		_, path, _ := strings.Cut(rest, ":")
		uid := podOfPath(path)
		if uid == "" {
			continue
		}
		if found != "" && found != uid {
			return ""
		}
		found = uid
	}
	return found
}

func podOfPath(path string) types.UID {
	for part := range strings.SplitSeq(path, "/") {
		if uid, ok := strings.CutPrefix(part, "pod"); ok && uid != "" {
			return types.UID(uid)
		}
		slice, ok := strings.CutSuffix(part, ".slice")
		if i := strings.LastIndex(slice, "-pod"); ok && i >= 0 && slice[i+len("-pod"):] != "" {
			return types.UID(strings.ReplaceAll(slice[i+len("-pod"):], "_", "-"))
		}
	}
	return ""
}
