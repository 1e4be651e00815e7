package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Loop is an attached loop device. Loop devices are the machine's, not a node's: those that a kubelet attaches for
// Block volumes outlive the node.
type Loop struct {
	Device  string // /dev/loopN
	Backing string // its file, as the kernel names it
	file    inode
	over    uint64 // the device number of its file, where that is a device
}

type inode struct{ dev, ino uint64 }

// Loops returns the attached loop devices that are the cluster's: their file lies in its state directory, was
// attached by a node's kubelet (a path which only the node has, or has no more), or is itself such a device.
func Loops(state string) ([]Loop, error) {
	all, err := attached()
	if err != nil || len(all) == 0 {
		return nil, err
	}
	mine, numbers := map[string]bool{}, map[uint64]bool{}
	inodes := nodeFiles(state, all)
	for changed := true; changed; {
		changed = false
		for _, l := range all {
			ours := strings.HasPrefix(l.Backing, state+"/") || inodes[l.file] || onNodeOnly(l.Backing) || l.orphan() || numbers[l.over]
			if !ours || mine[l.Device] {
				continue
			}
			mine[l.Device], changed = true, true
			if n := deviceNumber(l.Device); n != 0 {
				numbers[n] = true
			}
		}
	}
	var found []Loop
	for _, l := range all {
		if mine[l.Device] {
			found = append(found, l)
		}
	}
	return found, nil
}

func attached() ([]Loop, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	var all []Loop
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue // detached meanwhile
		}
		dev := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(f)))
		l := Loop{Device: dev, Backing: strings.TrimSuffix(strings.TrimSpace(string(raw)), " (deleted)")}
		if info, err := status(dev); err == nil {
			l.file, l.over = inode{info.Device, info.Inode}, info.Rdevice
		}
		all = append(all, l)
	}
	return all, nil
}

func status(device string) (*unix.LoopInfo64, error) {
	f, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return unix.IoctlLoopGetStatus64(int(f.Fd()))
}

func deviceNumber(device string) uint64 {
	var st syscall.Stat_t
	if syscall.Stat(device, &st) != nil {
		return 0
	}
	return st.Rdev
}

// onNodeOnly reports whether the path is a kubelet's that this machine itself doesn't have.
func onNodeOnly(path string) bool {
	if !strings.HasPrefix(path, "/var/lib/kubelet/") {
		return false
	}
	_, err := os.Stat(path)
	return err != nil
}

// orphan reports whether the loop is over a device that a kubelet had mounted at a path of its own, in a namespace that
// has ended: the kernel then calls it by the root of the mount that is gone.
func (l Loop) orphan() bool { return l.over != 0 && l.Backing == "/" }

// nodeFiles returns which of the loops' files lie in a node's directory, whatever the kernel calls them: the name of
// a file below a mount that is gone says nothing.
func nodeFiles(state string, loops []Loop) map[inode]bool {
	wanted, found := map[inode]bool{}, map[inode]bool{}
	for _, l := range loops {
		wanted[l.file] = l.file != inode{}
	}
	nodes, _ := filepath.Glob(filepath.Join(state, "node[0-9]*", "var", "lib"))
	for _, dir := range nodes {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil
			}
			fi, err := d.Info()
			if err != nil {
				return nil
			}
			st, ok := fi.Sys().(*syscall.Stat_t)
			if key := (inode{st.Dev, st.Ino}); ok && wanted[key] {
				found[key] = true
			}
			return nil
		})
	}
	return found
}

// Detach frees the device; one that is open is freed when it is closed.
func (l Loop) Detach() error {
	f, err := os.OpenFile(l.Device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0); err != nil && err != unix.ENXIO {
		return fmt.Errorf("detaching %s from %s: %w", l.Device, l.Backing, err)
	}
	return nil
}
