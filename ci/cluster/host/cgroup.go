package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"virtstack.io/virtstack/ci/cluster/await"
	"virtstack.io/virtstack/ci/cluster/layout"
)

const cgroupRoot = "/sys/fs/cgroup"

// Hierarchy is one tree of control groups as /proc/PID/cgroup names it.
type Hierarchy struct {
	Controllers string // comma-separated, or name=NAME; empty for version 2
	Path        string // the process's group
}

// Dir is where the hierarchy is mounted, below the mount of all of them.
func (h Hierarchy) Dir() string { return strings.TrimPrefix(h.Controllers, "name=") }

// Hierarchies returns the version 1 hierarchies of a /proc/PID/cgroup, or version 2's alone where there is no other.
func Hierarchies(cgroup string) []Hierarchy {
	var v1, v2 []Hierarchy
	for line := range strings.Lines(cgroup) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case f[1] == "":
			v2 = append(v2, Hierarchy{"", f[2]})
		default:
			v1 = append(v1, Hierarchy{f[1], f[2]})
		}
	}
	if len(v1) > 0 {
		return v1
	}
	return v2
}

// MakeGroups makes the control group name in every hierarchy and returns their directories. In version 1 they lie
// beneath the caller's own groups, so that its limits hold; in version 2, where a group with processes can't have
// controllers for its children, beneath the root.
func MakeGroups(name string) ([]string, error) {
	raw, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	var made []string
	for _, h := range Hierarchies(string(raw)) {
		parent := filepath.Join(cgroupRoot, h.Dir(), h.Path)
		if h.Controllers == "" {
			parent = cgroupRoot
		}
		dir := filepath.Join(parent, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return made, fmt.Errorf("making control group: %w", err)
		}
		made = append(made, dir)
		if err := prepare(h, parent, dir); err != nil {
			return made, fmt.Errorf("preparing control group %s: %w", dir, err)
		}
	}
	return made, nil
}

// prepare makes a new group usable: version 1's cpuset holds no CPU at first, version 2's has no controller.
func prepare(h Hierarchy, parent, dir string) error {
	if h.Controllers == "" {
		return DelegateAll(parent)
	}
	if !slices.Contains(strings.Split(h.Controllers, ","), "cpuset") {
		return nil
	}
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		raw, err := os.ReadFile(filepath.Join(parent, f))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f), raw, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0o644)
}

// DelegateAll gives every controller of a version 2 group to its children.
func DelegateAll(group string) error {
	raw, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for _, c := range strings.Fields(string(raw)) {
		if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// EnterGroups moves a process into the groups.
func EnterGroups(groups []string, pid int) error {
	for _, g := range groups {
		if err := os.WriteFile(filepath.Join(g, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return fmt.Errorf("entering control group: %w", err)
		}
	}
	return nil
}

// Groups returns every node's control groups that exist, whoever made them.
func Groups() ([]string, error) {
	var found []string
	err := filepath.WalkDir(cgroupRoot, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a group that went away meanwhile
		}
		if err != nil || !d.IsDir() {
			return err
		}
		if strings.HasPrefix(d.Name(), layout.GroupPrefix) {
			found = append(found, path)
			return fs.SkipDir
		}
		return nil
	})
	return found, err
}

// RemoveGroup ends what still runs in the group and removes it with everything below. Left behind, each of its
// children would cost the next kubelet three seconds.
func RemoveGroup(ctx context.Context, group string) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	return await.True(ctx, "control group "+group+" to empty", 50*time.Millisecond, func(context.Context) (bool, error) {
		var dirs []string
		_ = filepath.WalkDir(group, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for _, dir := range slices.Backward(dirs) { // children first
			killAll(dir)
			_ = os.Remove(dir) // fails while a process is left: tried again
		}
		_, err := os.Stat(group)
		return errors.Is(err, fs.ErrNotExist), nil
	})
}

func killAll(group string) {
	raw, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		return
	}
	for _, f := range strings.Fields(string(raw)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL) // gone already is as good
		}
	}
}
