// Package cpus tells on which of its node's CPUs a launcher may run, and keeps the launcher to some of them.
package cpus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"virtstack.io/virtstack/launcher/domain"
	"virtstack.io/virtstack/machine/cpumask"
)

// most is how many CPUs a node may have; source: the kernel's own limit.
const most = 8192

// Read returns the CPUs that this process may run on, which is what the Pod was given. proc is /proc, sys is /sys. A node
// that doesn't tell of its cores has one for each CPU, one that doesn't tell of NUMA cells has one.
func Read(proc, sys fs.FS) ([]domain.HostCPU, error) {
	status, err := fs.ReadFile(proc, "self/status")
	if err != nil {
		return nil, fmt.Errorf("asking for the Pod's CPUs: %w", err)
	}
	var ids []uint
	for line := range bytes.Lines(status) {
		if text, ok := strings.CutPrefix(string(line), "Cpus_allowed_list:"); ok {
			ids, err = Parse(text)
		}
	}
	if err != nil || len(ids) == 0 {
		return nil, fmt.Errorf("reading the Pod's CPUs in /proc/self/status: %w", errors.Join(err, errNone(ids)))
	}
	cells := cellsOf(sys)
	var out []domain.HostCPU
	for _, id := range ids {
		core := id
		threads, err := list(sys, fmt.Sprintf("devices/system/cpu/cpu%d/topology/thread_siblings_list", id))
		if err == nil && len(threads) > 0 {
			core = threads[0]
		}
		out = append(out, domain.HostCPU{ID: id, Core: core, Cell: cells[id]})
	}
	return out, nil
}

func errNone(ids []uint) error {
	if len(ids) == 0 {
		return errors.New("it names none")
	}
	return nil
}

// cellsOf returns the NUMA cell of each of the node's CPUs.
func cellsOf(sys fs.FS) map[uint]uint {
	out := map[uint]uint{}
	files, _ := fs.Glob(sys, "devices/system/node/node[0-9]*/cpulist") // the pattern is right
	for _, file := range files {
		cell, err := strconv.ParseUint(strings.TrimPrefix(path.Base(path.Dir(file)), "node"), 10, 32)
		ids, err2 := list(sys, file)
		if err != nil || err2 != nil {
			continue
		}
		for _, id := range ids {
			out[id] = uint(cell)
		}
	}
	return out
}

func list(sys fs.FS, file string) ([]uint, error) {
	text, err := fs.ReadFile(sys, file)
	if err != nil {
		return nil, err
	}
	return Parse(string(text))
}

// Parse reads a list of CPUs as the kernel and libvirt write it, such as 0-3,8.
func Parse(text string) ([]uint, error) {
	var out []uint
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		if part == "" {
			continue
		}
		first, last, err := cpumask.Range(part, most)
		if err != nil {
			return nil, fmt.Errorf("reading CPUs: %w", err)
		}
		for id := first; id <= last; id++ {
			out = append(out, id)
		}
		if len(out) > most {
			return nil, fmt.Errorf("reading CPUs: more than %d", most)
		}
	}
	return out, nil
}
