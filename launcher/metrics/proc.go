package metrics

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc; source: USER_HZ, which is 100 on every architecture of Linux that runs guests.
const tick = time.Second / 100

// emulator is how the name of the process that runs the guest starts, as the kernel cuts it.
const emulator = "qemu-system-"

var errNoFigure = errors.New("the kernel doesn't tell")

// ReadHost reads what a container is told of its node; proc is /proc.
func ReadHost(proc fs.FS, name string) (Host, error) {
	h := Host{Name: name, CPUs: runtime.NumCPU()}
	stat, err1 := fs.ReadFile(proc, "stat")
	memory, err2 := figures(proc, "meminfo")
	paging, err3 := figures(proc, "vmstat")
	if err := errors.Join(err1, err2, err3); err != nil {
		return h, fmt.Errorf("reading the node's load: %w", err)
	}
	all, cpus := cpuTimes(stat)
	if cpus > 0 {
		h.CPUs = cpus
	}
	h.CPUTime = all
	h.Free, h.Used = memory["MemFree"]<<10, (memory["MemTotal"]-min(memory["MemTotal"], memory["MemAvailable"]))<<10
	h.VirtualFree = h.Free + memory["SwapFree"]<<10
	// The kernel counts what moved to and from swap in pages of 4 KiB.
	h.PagedIn, h.PagedOut = paging["pswpin"]<<12, paging["pswpout"]<<12
	return h, nil
}

// cpuTimes returns what all CPUs have worked, and how many there are.
func cpuTimes(stat []byte) (worked time.Duration, cpus int) {
	for line := range bytes.Lines(stat) {
		f := strings.Fields(string(line))
		if len(f) < 5 || !strings.HasPrefix(f[0], "cpu") {
			continue
		}
		if f[0] != "cpu" {
			cpus++
			continue
		}
		for i, text := range f[1:] {
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && i != idle && i != waiting && i < guestTime {
				worked += time.Duration(n) * tick
			}
		}
	}
	return worked, cpus
}

// Columns of /proc/stat: not worked, or counted in others too.
const idle, waiting, guestTime = 3, 4, 8

// figures reads lines of a name and a number.
func figures(proc fs.FS, name string) (map[string]uint64, error) {
	b, err := fs.ReadFile(proc, name)
	if err != nil {
		return nil, err
	}
	out := map[string]uint64{}
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 2 {
			continue
		}
		if n, err := strconv.ParseUint(f[1], 10, 64); err == nil {
			out[strings.TrimSuffix(f[0], ":")] = n
		}
	}
	return out, nil
}

// GuestTime returns what the process that runs the guest has worked; proc is /proc of the Pod, where there is one.
func GuestTime(proc fs.FS) (time.Duration, error) {
	names, err := fs.Glob(proc, "[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		b, err := fs.ReadFile(proc, name)
		if err != nil {
			continue // it has ended
		}
		// The name is in brackets and may hold anything; the fields behind the last one are numbers.
		open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
		if open < 0 || end < open || !strings.HasPrefix(string(b[open+1:end]), emulator) {
			continue
		}
		f := strings.Fields(string(b[end+1:]))
		const user, system = 11, 12
		if len(f) <= system {
			return 0, fmt.Errorf("%s: %w", path.Dir(name), errNoFigure)
		}
		u, err1 := strconv.ParseInt(f[user], 10, 64)
		s, err2 := strconv.ParseInt(f[system], 10, 64)
		return time.Duration(u+s) * tick, errors.Join(err1, err2)
	}
	return 0, fmt.Errorf("the guest's process: %w", errNoFigure)
}
