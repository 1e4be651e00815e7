package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// event is a line of "go test -json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// goTest runs "go test", with cgo where the race detector needs it, prints a line for each package, everything of what
// failed, and with -v each test. It counts tests; a skipped one fails the run.
func (r *runner) goTest(ctx context.Context, args ...string) error {
	verbose := slices.Contains(args, "-v")
	args = slices.DeleteFunc(args, func(a string) bool { return a == "-v" })
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	if slices.Contains(args, "-race") {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	skipped := r.skipped
	r.report(out, verbose)
	if err := cmd.Wait(); err != nil {
		return err
	}
	if r.skipped > skipped {
		return fmt.Errorf("%d tests were skipped: a skipped test proves nothing", r.skipped-skipped)
	}
	return nil
}

func (r *runner) report(out io.Reader, verbose bool) {
	output := map[string][]string{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Println(lines.Text())
			continue
		}
		r.event(e, output, verbose)
	}
}

func (r *runner) event(e event, output map[string][]string, verbose bool) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Print(e.Output)
	case "output":
		output[key] = append(output[key], e.Output)
		if verbose && e.Test != "" {
			fmt.Print(e.Output)
		}
	case "pass", "fail", "skip":
		r.verdict(e, strings.Join(output[key], ""), verbose)
		delete(output, key)
	}
}

func (r *runner) verdict(e event, output string, verbose bool) {
	if e.Test == "" {
		if e.Action == "fail" || e.Action == "pass" {
			fmt.Printf("%-4s %s %.1fs\n", e.Action, e.Package, e.Elapsed)
		}
		if e.Action == "fail" {
			fmt.Print(output)
		}
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		r.failures = append(r.failures, said(e.Test, output))
	case "skip":
		r.skipped++
	}
	if e.Action != "pass" && !verbose {
		fmt.Print(output)
	}
}

// said returns a failed test's name and what it said itself, without the cluster's state that it may have added: a line
// of a source file, and the next few.
func said(test, output string) string {
	const lines, width = 12, 400
	keep := []string{"FAIL: " + test}
	for line := range strings.Lines(output) {
		if len(keep) > lines {
			break
		}
		if line = strings.TrimRight(line, "\n"); strings.Contains(line, "_test.go:") && !strings.Contains(line, "kubectl get ") {
			keep = append(keep, line[:min(len(line), width)])
		}
	}
	return strings.Join(keep, "\n")
}
