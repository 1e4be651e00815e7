// Command gitops measures a Bundle beside the real Flux: 1,000 halted VMs of one Git repository, applied, looked at again
// unchanged, and with one of them changed, by each in turn against one API server of its own. It prints Markdown for
// docs/performance.md: medians of three runs. It needs the dev cluster's programs but no cluster.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"virtstack.io/virtstack/ci/lab"
	"virtstack.io/virtstack/kube/kubetest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	runs := flag.Int("runs", 3, "how often each is measured; the median is printed")
	only := flag.String("layout", "", "measure one layout alone")
	flag.Parse()
	if err := run(ctx, *runs, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, runs int, only string) (err error) {
	l, err := lab.Here()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gitops-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // nothing of it is kept
	env, stop, err := kubetest.Audited(dir)
	if err != nil {
		return err
	}
	defer func() { _ = stop() }() // what was measured counts
	b := &bench{lab: l, env: env, dir: dir, calls: &audit{path: filepath.Join(dir, "audit.log")}}
	if err := b.serve(); err != nil {
		return err
	}
	tools, end, err := b.tools(ctx)
	defer end()
	if err != nil {
		return err
	}
	for _, lay := range layouts {
		if only != "" && lay.name != only {
			continue
		}
		if err := b.compare(ctx, lay, tools, runs); err != nil {
			return fmt.Errorf("%s: %w", lay.name, err)
		}
	}
	return nil
}

// compare measures each tool in turn, in the opposite order each time, and prints a table.
func (b *bench) compare(ctx context.Context, lay layout, tools []tool, runs int) error {
	all := results{}
	for i := range runs {
		for j := range tools {
			t := tools[(i+j)%len(tools)]
			name := fmt.Sprintf("%s-%s-%d", lay.name, t.name(), i)
			got, err := b.measure(ctx, lay, t, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for phase, m := range got {
				all.add(phase, t.name(), m)
			}
		}
	}
	all.print(lay, runs)
	return nil
}

// measure has a tool apply the VMs of a repository of its own in a namespace of its own.
func (b *bench) measure(ctx context.Context, lay layout, t tool, name string) ([]measured, error) {
	r, err := b.repository(lay, name)
	if err != nil {
		return nil, err
	}
	if err := b.namespace(ctx, name); err != nil {
		return nil, err
	}
	first, err := b.phase(ctx, t, r, func() error { return t.create(ctx, name, r.url) })
	if err != nil {
		return nil, fmt.Errorf("first apply: %w", err)
	}
	same, err := b.phase(ctx, t, r, func() error { return t.again(ctx, name) })
	if err != nil {
		return nil, fmt.Errorf("unchanged: %w", err)
	}
	if err := r.change(lay); err != nil {
		return nil, err
	}
	one, err := b.phase(ctx, t, r, func() error { return t.pushed(ctx, name) })
	if err != nil {
		return nil, fmt.Errorf("one changed: %w", err)
	}
	all := []measured{first, same, one}
	fmt.Fprintf(os.Stderr, "%s: %+v\n", name, all)
	return all, t.end(ctx, name)
}

// quiet is how long a tool makes no call once it is done; builds take less.
const quiet = 4 * time.Second

// phase triggers and waits until the tool has the wanted revision applied, has looked at the objects, and is quiet.
func (b *bench) phase(ctx context.Context, t tool, r *repository, trigger func() error) (measured, error) {
	for _, pid := range t.pids() {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil { // the peak starts anew
			return measured{}, err
		}
	}
	since := time.Now()
	if err := trigger(); err != nil {
		return measured{}, err
	}
	wanted, err := r.head()
	if err != nil {
		return measured{}, err
	}
	var m measured
	err = lab.Until(ctx, 10*time.Minute, "revision "+wanted, func(ctx context.Context) (bool, string, error) {
		done, at, err := t.done(ctx, r.namespace, wanted)
		if !done || err != nil {
			return false, at, err
		}
		if m, err = b.calls.since(since, t.agents()); err != nil {
			return false, at, err
		}
		return m.calls() > 0 && time.Since(m.last) > quiet, fmt.Sprintf("%s, %d calls", at, m.calls()), nil
	})
	m.took = m.last.Sub(since)
	for _, pid := range t.pids() {
		m.peak += peak(pid)
	}
	return m, err
}
