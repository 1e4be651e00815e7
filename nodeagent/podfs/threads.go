package podfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// maxThreads bounds what is looked at of one process: a guest may have 4096 virtual CPUs, and QEMU some threads more.
const maxThreads = 16384

// Thread is a thread of a Pod's process. Its name is what the process says.
type Thread struct {
	ID   int
	Name string
}

// Threads returns those of a Pod's processes that run as uid: the kernel says that they are the Pod's. What ends
// meanwhile is left out.
func Threads(pod types.UID, uid uint32) ([]Thread, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []Thread
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, err := process(pid, pod)
		if err != nil {
			continue // another's, or it has ended
		}
		found, err := p.threads(uid)
		p.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESRCH) {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (p *Process) threads(uid uint32) ([]Thread, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(p.dir.Fd()), &st); err != nil || st.Uid != uid {
		return nil, err
	}
	tasks, err := p.open("task")
	if err != nil {
		return nil, err
	}
	defer tasks.Close()
	names, err := tasks.Readdirnames(maxThreads)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var out []Thread
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if comm, err := p.comm(name); err == nil {
			out = append(out, Thread{tid, comm})
		}
	}
	return out, nil
}

// comm reads the name of one of the process's threads, at most 15 bytes.
func (p *Process) comm(tid string) (string, error) {
	f, err := p.open("task/" + tid + "/comm")
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 64))
	return strings.TrimSuffix(string(raw), "\n"), err
}
