// Command tasks is what stands behind the Makefile: each target is a list of steps that are timed and whose output is
// shown as it comes.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: tasks TARGET (see make help)")
		os.Exit(2)
	}
	r := &runner{start: time.Now()}
	err := r.target(ctx, os.Args[1])
	r.summary()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// step is one thing that a target does.
type step struct {
	name string
	run  func(context.Context) error
}

type result struct {
	name string
	took time.Duration
	err  error
}

type runner struct {
	start                   time.Time
	results                 []result
	passed, failed, skipped int
	failures                []string // the name of each failed test and what it said
	timing                  bool
}

func (r *runner) target(ctx context.Context, name string) error {
	switch name {
	case "build":
		return r.steps(ctx, r.packages(), r.programs(), r.images())
	case "check":
		return r.steps(ctx, r.packages(), r.format(), r.vet(), r.laws(), r.unit(""))
	case "lint":
		return r.steps(ctx, r.format(), r.vet(), r.staticcheck(), r.promql(), r.vulnerabilities())
	case "up":
		return r.steps(ctx, r.packages(), r.programs(), r.up())
	case "down":
		return r.steps(ctx, r.down())
	case "clean":
		return r.steps(ctx, r.down(), step{"remove .cluster", func(context.Context) error { return os.RemoveAll(".cluster") }})
	case "e2e":
		return r.steps(ctx, r.flux(), r.endToEnd())
	case "bench":
		return r.steps(ctx, r.program("bench", "./ci/bench"))
	case "demo":
		return r.steps(ctx, r.packages(), r.programs(), r.images(), r.up(), r.load(), r.program("demo", "./ci/demo"))
	case "test":
		return r.test(ctx)
	}
	return fmt.Errorf("no target %q (see make help)", name)
}

// test is all that CI runs. The cluster is taken down whatever happened, and that nothing is left is part of it.
func (r *runner) test(ctx context.Context) error {
	r.timing = true
	err := r.steps(ctx, r.packages(), r.programs(), r.format(), r.generated(), r.vet(), r.staticcheck(), r.promql(), r.vulnerabilities(),
		r.laws(), r.unit("-race"), r.images(), r.verify(), r.libvirt(), r.flux(), r.down(), r.up(), r.load(), r.program("demo", "./ci/demo"), r.endToEnd())
	if err != nil {
		r.logs()
	}
	err = errors.Join(err, r.steps(context.WithoutCancel(ctx), r.down(), r.nothingLeft()))
	fmt.Printf("\n%s\n\n%d passed, %d failed, %d skipped\n", strings.Join(r.failures, "\n"), r.passed, r.failed, r.skipped)
	return err
}

func (r *runner) steps(ctx context.Context, steps ...step) error {
	for _, s := range steps {
		begin := time.Now()
		fmt.Printf("==> %s\n", s.name)
		err := s.run(ctx)
		r.results = append(r.results, result{s.name, time.Since(begin), err})
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

func (r *runner) summary() {
	if !r.timing {
		return
	}
	fmt.Println()
	for _, s := range r.results {
		verdict := "ok"
		if s.err != nil {
			verdict = "FAILED"
		}
		fmt.Printf("%7.1fs  %-6s %s\n", s.took.Seconds(), verdict, s.name)
	}
	fmt.Printf("%7.1fs  in all\n", time.Since(r.start).Seconds())
}

// command prepares a program whose output is shown; env entries are added to ours.
func command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	return cmd
}

func run(ctx context.Context, name string, args ...string) error {
	return command(ctx, nil, name, args...).Run()
}

// logs shows the ends of the cluster's logs after a failure, so that CI's output explains itself.
func (r *runner) logs() {
	for _, args := range [][]string{
		{"get", "pods,vm,vmi,bundle,kubevirt", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"logs", "-n", "kubevirt", "--all-containers", "--prefix", "--tail=40", "-l", "app.kubernetes.io/part-of=kubevirt", "--max-log-requests=20"},
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		fmt.Printf("--- kubectl %s\n", strings.Join(args, " "))
		kubeconfig := "KUBECONFIG=" + filepath.Join(".cluster", "kubeconfig")
		if err := command(ctx, []string{kubeconfig}, filepath.Join(".cluster", "bin", "kubectl"), args...).Run(); err != nil {
			fmt.Println(err)
		}
		cancel()
	}
}
