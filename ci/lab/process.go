package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Process is a process of the machine as it can't be mistaken for another: its pid and start time (field 22 of
// /proc/PID/stat, in clock ticks since boot).
type Process struct {
	PID     int
	Started string
	Name    string // of the executable, as the kernel keeps it: at most 15 characters
}

// Processes returns those whose command line contains all the texts.
func Processes(texts ...string) []Process {
	var found []Process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if p, ok := read(dir, texts); ok {
			found = append(found, p)
		}
	}
	return found
}

func read(dir string, texts []string) (Process, bool) {
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(line) == 0 {
		return Process{}, false
	}
	for _, t := range texts {
		if !strings.Contains(string(line), t) {
			return Process{}, false
		}
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	open, end := strings.Index(string(stat), "("), strings.LastIndex(string(stat), ")")
	if err != nil || open < 0 || end < open {
		return Process{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return Process{}, false
	}
	p := Process{Started: fields[19], Name: string(stat[open+1 : end])}
	_, err = fmt.Sscan(filepath.Base(dir), &p.PID)
	return p, err == nil
}

// QEMU returns the QEMU processes of a domain (<namespace>_<name>).
func QEMU(domain string) []Process { return Processes("qemu-system", "guest="+domain+",") }

// PodProcesses returns the processes of the Pod that runs a domain: those in its QEMU's PID namespace.
func PodProcesses(domain string) []Process {
	var same []Process
	for _, q := range QEMU(domain) {
		space, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", q.PID))
		for _, p := range Processes() {
			if other, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", p.PID)); err == nil && other == space {
				same = append(same, p)
			}
		}
	}
	return same
}

// Memory is what a process uses, in MiB; source: /proc/PID/smaps_rollup.
type Memory struct{ RSS, PSS, Anonymous float64 }

// Memory reads it; a process that is gone uses none.
func (p Process) Memory() Memory {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID))
	kib := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		var key string
		var n float64
		if _, err := fmt.Sscan(line, &key, &n); err == nil {
			kib[key] = n
		}
	}
	return Memory{kib["Rss:"] / 1024, kib["Pss:"] / 1024, kib["Pss_Anon:"] / 1024}
}
