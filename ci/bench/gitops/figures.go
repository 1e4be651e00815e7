package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// measured is what one phase took of one tool.
type measured struct {
	took                  time.Duration
	reads, dryRuns, write int // calls of the API server
	last                  time.Time
	peak                  float64 // of memory, MiB
}

func (m measured) calls() int { return m.reads + m.dryRuns + m.write }

// audit reads an audit log as it grows.
type audit struct {
	path   string
	offset int64
	events []event
}

type event struct {
	Verb, UserAgent, RequestURI string
	RequestReceivedTimestamp    time.Time
	StageTimestamp              time.Time
}

// since sums up what agents have asked for since then; watches and leases don't count.
func (a *audit) since(t time.Time, agents []string) (measured, error) {
	if err := a.read(); err != nil {
		return measured{}, err
	}
	var m measured
	for _, e := range a.events {
		agent, _, _ := strings.Cut(e.UserAgent, "/")
		if e.RequestReceivedTimestamp.Before(t) || !slices.Contains(agents, agent) || e.Verb == "watch" || strings.Contains(e.RequestURI, "/leases/") {
			continue
		}
		switch {
		case e.Verb == "get" || e.Verb == "list":
			m.reads++
		case strings.Contains(e.RequestURI, "dryRun="):
			m.dryRuns++
		default:
			m.write++
		}
		if e.StageTimestamp.After(m.last) {
			m.last = e.StageTimestamp
		}
	}
	return m, nil
}

// read takes in the whole lines that are new.
func (a *audit) read() error {
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		a.offset += int64(len(line))
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		a.events = append(a.events, e)
	}
}

// peak is the most memory that a process held since its peak was set back, in MiB; source: VmHWM.
func peak(pid int) float64 {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(raw)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmHWM: %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	return 0
}

var phases = []string{"first apply", "unchanged, looked at again", "one VM changed"}

// results are by phase and tool.
type results map[int]map[string][]measured

func (r results) add(phase int, tool string, m measured) {
	if r[phase] == nil {
		r[phase] = map[string][]measured{}
	}
	r[phase][tool] = append(r[phase][tool], m)
}

func (r results) print(lay layout, runs int) {
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("\n%s; median of %d, load at the end %s\n\n", lay.says, runs, strings.Fields(string(load))[0])
	fmt.Println("| what | | Bundle | Flux | Bundle : Flux |\n| --- | --- | --- | --- | --- |")
	for phase, name := range phases {
		b, f := r[phase]["bundle"], r[phase]["flux"]
		row := func(what, format string, of func(measured) float64) {
			x, y := median(b, of), median(f, of)
			fmt.Printf("| %s | %s | "+format+" | "+format+" | %s |\n", name, what, x, y, ratio(x, y))
			name = ""
		}
		row("seconds", "%.1f", func(m measured) float64 { return m.took.Seconds() })
		row("reads", "%.0f", func(m measured) float64 { return float64(m.reads) })
		row("dry runs", "%.0f", func(m measured) float64 { return float64(m.dryRuns) })
		row("writes", "%.0f", func(m measured) float64 { return float64(m.write) })
		row("peak memory, MiB", "%.0f", func(m measured) float64 { return m.peak })
	}
}

func median(all []measured, of func(measured) float64) float64 {
	var x []float64
	for _, m := range all {
		x = append(x, of(m))
	}
	slices.Sort(x)
	return x[len(x)/2]
}

func ratio(x, y float64) string {
	if y == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", x/y)
}
