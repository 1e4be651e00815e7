// Package proc starts the cluster's processes so that a later run finds them again, and ends exactly those.
package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"virtstack.io/virtstack/ci/cluster/await"
)

// Marker is the environment variable that every process of a cluster carries; its value is the cluster's state
// directory. It proves that a process is ours even when its pid file was lost.
const Marker = "VIRTSTACK_CLUSTER"

// ID names one process for good: a number alone may be given to another process.
type ID struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks between boot and the process's start
}

// Of returns the ID of the process that has pid now.
func Of(pid int) (ID, error) {
	_, start, err := stat(pid)
	return ID{pid, start}, err
}

// stat reads state and start time from /proc/PID/stat.
func stat(pid int) (state string, start uint64, err error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, err
	}
	return parseStat(raw)
}

// parseStat skips the name, which may hold blanks and brackets, and counts fields from behind it.
func parseStat(raw []byte) (state string, start uint64, err error) {
	f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	if len(f) < 20 {
		return "", 0, fmt.Errorf("reading process state %q: too few fields", raw)
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	return f[0], start, err
}

// Alive reports whether the process still runs. A zombie doesn't: whoever started it may reap it late. One whose other
// threads haven't ended yet does: they hold its files, its listening sockets among them.
func (id ID) Alive() bool {
	state, start, err := stat(id.PID)
	if err != nil || start != id.Start || state == "X" {
		return false
	}
	if state != "Z" {
		return true
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", id.PID))
	return err == nil && len(threads) > 1
}

// End signals the process and waits until it is gone; after patience it is killed. An ended process is success.
func (id ID) End(ctx context.Context, sig syscall.Signal, patience time.Duration) error {
	if !id.Alive() {
		return nil
	}
	if err := syscall.Kill(id.PID, sig); err != nil {
		return fmt.Errorf("signalling process %d: %w", id.PID, err)
	}
	gone := func(context.Context) (bool, error) { return !id.Alive(), nil }
	soft, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	what := fmt.Sprintf("process %d to end", id.PID)
	if await.True(soft, what, 20*time.Millisecond, gone) == nil {
		return nil
	}
	_ = syscall.Kill(id.PID, syscall.SIGKILL) // gone in between: found out below
	hard, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	return await.True(hard, what, 20*time.Millisecond, gone)
}

// Save records the process in a file, Load reads it back; a missing file gives false.
func (id ID) Save(file string) error {
	raw, err := json.Marshal(id)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644)
}

// Load reads what Save wrote. A file that is missing or damaged gives false: Marked finds such a process.
func Load(file string) (ID, bool) {
	var id ID
	raw, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(raw, &id) != nil {
		return ID{}, false
	}
	return id, true
}

// Daemon is a process that outlives the program that starts it.
type Daemon struct {
	Args    []string // program first
	Dir     string
	Log     string // file for its output
	PIDFile string
	State   string // the cluster's state directory, for the marker
	Attr    syscall.SysProcAttr
	Files   []*os.File // descriptors from 3 on
}

// environment is all that a daemon gets of ours: what lies in a developer's shell is not for a cluster.
func (d Daemon) environment() []string {
	return []string{
		Marker + "=" + d.State, "HOME=/root", "LANG=C.UTF-8",
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
}

// Start starts the daemon in a session of its own and records it.
func (d Daemon) Start() (ID, error) {
	if err := os.MkdirAll(filepath.Dir(d.Log), 0o755); err != nil {
		return ID{}, err
	}
	log, err := os.Create(d.Log)
	if err != nil {
		return ID{}, err
	}
	defer log.Close()
	cmd := exec.Command(d.Args[0], d.Args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = d.environment(), d.Dir, log, log, d.Files
	attr := d.Attr
	attr.Setsid = true
	cmd.SysProcAttr = &attr
	if err := cmd.Start(); err != nil {
		return ID{}, fmt.Errorf("starting %s: %w", filepath.Base(d.Args[0]), err)
	}
	id, err := Of(cmd.Process.Pid)
	if err == nil {
		err = id.Save(d.PIDFile)
	}
	go func() { _ = cmd.Wait() }() // so that a process which ends at once is no zombie while we live
	return id, err
}

// Marked returns every live process that carries the marker of the cluster in state, this one excepted.
func Marked(state string) ([]ID, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	want := []byte(Marker + "=" + state)
	var found []ID
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() || !marked(dir, want) {
			continue
		}
		if id, err := Of(pid); err == nil && id.Alive() {
			found = append(found, id)
		}
	}
	return found, nil
}

func marked(dir string, want []byte) bool {
	raw, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return false // gone, or none of our business
	}
	for v := range bytes.SplitSeq(raw, []byte{0}) {
		if bytes.Equal(v, want) {
			return true
		}
	}
	return false
}

// Name returns the process's program and first argument, for people.
func (id ID) Name() string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id.PID))
	if err != nil || len(raw) == 0 {
		return strconv.Itoa(id.PID)
	}
	args := strings.SplitN(strings.TrimRight(string(raw), "\x00"), "\x00", 3)
	args[0] = filepath.Base(args[0])
	return fmt.Sprintf("%d (%s)", id.PID, strings.Join(args[:min(len(args), 2)], " "))
}
