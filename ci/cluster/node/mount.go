package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/ci/cluster/config"
	"virtstack.io/virtstack/ci/cluster/host"
)

// own are the directories of which a node has its own; all else of the root file system it shares with the host.
var own = []string{"/var/lib", "/var/log", "/opt"}

// mount gives the node its file systems. Everything is private while it is laid out, so that no mount shows twice, and
// shared at the end: without that, Bidirectional mounts of Pods would never reach the node.
func (s spec) mount() error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("leaving the host's mounts: %w", err)
	}
	if err := s.mountRun(); err != nil {
		return err
	}
	for _, dir := range own {
		if err := bind(config.NodeData+dir, dir); err != nil {
			return err
		}
	}
	if err := mountEtc(); err != nil {
		return err
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := mountSys(); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, "")
}

// mountRun gives the node an empty /run, in which it finds programs and configuration wherever the checkout is:
// they are opened before mounts may hide them.
func (s spec) mountRun() error {
	dirs := map[string]string{
		config.NodeBin: s.Bin, config.NodeConfig: s.Config, config.NodeLogs: s.Logs, config.NodeData: s.Data,
	}
	opened := map[string]int{}
	for to, from := range dirs {
		fd, err := unix.Open(from, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening %s: %w", from, err)
		}
		defer unix.Close(fd)
		opened[to] = fd
	}
	if err := unix.Mount("run", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting /run: %w", err)
	}
	for to, fd := range opened {
		if err := bind("/proc/self/fd/"+strconv.Itoa(fd), to); err != nil {
			return err
		}
	}
	return nil
}

func bind(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", from, to, err)
	}
	return nil
}

// mountEtc lets the node write to its /etc what the host's must not hold, forgotten when the node ends.
func mountEtc() error {
	upper, work := "/run/etc/upper", "/run/etc/work"
	if err := errors.Join(os.MkdirAll(upper, 0o755), os.MkdirAll(work, 0o755)); err != nil {
		return err
	}
	if err := unix.Mount("etc", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+upper+",workdir="+work); err != nil {
		return fmt.Errorf("mounting /etc: %w", err)
	}
	return nil
}

// mountSys replaces the host's /sys: it shows the network namespace it was mounted in, and a control group mount of
// the host in mountinfo would lead runc, the shim and the kubelet to groups that aren't the node's.
func mountSys() error {
	for {
		err := unix.Unmount("/sys", unix.MNT_DETACH)
		if errors.Is(err, unix.EINVAL) {
			break // no longer a mount point
		}
		if err != nil {
			return fmt.Errorf("unmounting /sys: %w", err)
		}
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mounting /sys: %w", err)
	}
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	hierarchies := host.Hierarchies(string(raw))
	if len(hierarchies) == 1 && hierarchies[0].Controllers == "" {
		return mountUnified()
	}
	if err := unix.Mount("cgroup", cgroupRoot, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting %s: %w", cgroupRoot, err)
	}
	for _, h := range hierarchies {
		if err := mountHierarchy(h); err != nil {
			return fmt.Errorf("mounting control groups %s: %w", h.Controllers, err)
		}
	}
	return nil
}

const cgroupRoot = "/sys/fs/cgroup"

func mountHierarchy(h host.Hierarchy) error {
	dir, options := filepath.Join(cgroupRoot, h.Dir()), h.Controllers
	if h.Dir() != h.Controllers { // a named one has no controller
		options = "none," + h.Controllers
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return unix.Mount("cgroup", dir, "cgroup", 0, options)
}

// mountUnified mounts version 2 and moves the node's own processes into a leaf: a group with processes can't give its
// controllers to its children, which the kubelet needs.
func mountUnified() error {
	if err := unix.Mount("cgroup2", cgroupRoot, "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", cgroupRoot, err)
	}
	leaf := filepath.Join(cgroupRoot, "init")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return err
	}
	if err := host.EnterGroups([]string{leaf}, os.Getpid()); err != nil {
		return err
	}
	return host.DelegateAll(cgroupRoot)
}
