// Command bench measures on the running dev cluster what docs/performance.md says, and prints it as Markdown: the way
// from a created VM to its login, split by hop; the memory of a launcher Pod; the API writes of one VM.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/lab"
)

const (
	namespace = "bench"
	rounds    = 5
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	l, err := lab.Open()
	if err != nil {
		return err
	}
	if err := l.Namespace(ctx, namespace); err != nil {
		return err
	}
	defer l.Kubectl(context.WithoutCancel(ctx), "delete", "namespace", namespace, "--timeout=120s")
	times := map[string][]time.Duration{}
	for i := range rounds {
		name := fmt.Sprintf("vm%d", i)
		since := time.Now()
		hops, err := start(ctx, l, name)
		if err != nil {
			return err
		}
		for _, h := range hops {
			times[h.Name] = append(times[h.Name], h.At)
		}
		if i == rounds-1 {
			if err := writes(l, since); err != nil {
				return err
			}
			memory(name)
		}
		if _, err := l.Kubectl(ctx, "delete", "vm", name, "-n", namespace, "--timeout=60s"); err != nil {
			return err
		}
	}
	printTimes(times)
	return nil
}

// start creates the example VM under another name and follows it to its login.
func start(ctx context.Context, l *lab.Lab, name string) ([]lab.Hop, error) {
	raw, err := os.ReadFile(filepath.Join(l.Root, "examples", "vms", "hello.yaml"))
	if err != nil {
		return nil, err
	}
	vm := &v1.VirtualMachine{}
	if err := yaml.UnmarshalStrict(raw, vm); err != nil {
		return nil, err
	}
	vm.Namespace, vm.Name = namespace, name
	follow, cancel := context.WithCancel(ctx)
	defer cancel()
	hops, err := l.FollowVM(follow, namespace, name, "", func(lab.Hop) {})
	if err != nil {
		return nil, err
	}
	if err := l.Client.Create(ctx, vm); err != nil {
		return nil, err
	}
	if err := hops.Wait(ctx, 2*time.Minute, "guest started"); err != nil {
		return nil, err
	}
	console, err := l.Console(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	defer console.Close()
	if err := console.Expect(ctx, name+" login:", 2*time.Minute); err != nil {
		return nil, err
	}
	hops.Mark("login on the serial console")
	return hops.Seen(), nil
}

func printTimes(times map[string][]time.Duration) {
	names := make([]string, 0, len(times))
	for name, t := range times {
		slices.Sort(t)
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(median(times[a]), median(times[b])) })
	fmt.Printf("\n| hop, %d VMs one after another | min s | median s | max s |\n|---|---|---|---|\n", rounds)
	for _, name := range names {
		t := times[name]
		fmt.Printf("| %s | %.2f | %.2f | %.2f |\n", name, t[0].Seconds(), median(t).Seconds(), t[len(t)-1].Seconds())
	}
}

func median(t []time.Duration) time.Duration { return t[len(t)/2] }

func writes(l *lab.Lab, since time.Time) error {
	all, err := l.Writes(since, namespace)
	if err != nil {
		return err
	}
	fmt.Print("\n| writes | by | verb | object |\n|---|---|---|---|\n")
	for _, w := range all {
		fmt.Printf("| %d | %s | %s | %s |\n", w.Count, w.Agent, w.Verb, strings.TrimSuffix(w.Object, "/"))
	}
	return nil
}

// memory prints the PSS of each process of the VM's Pod.
func memory(name string) {
	fmt.Print("\n| process | RSS MiB | PSS MiB | anonymous MiB |\n|---|---|---|---|\n")
	total := 0.0
	for _, p := range lab.PodProcesses(namespace + "_" + name) {
		m := p.Memory()
		total += m.PSS
		fmt.Printf("| %s | %.1f | %.1f | %.1f |\n", p.Name, m.RSS, m.PSS, m.Anonymous)
	}
	fmt.Printf("| sum | | %.1f | |\n", total)
}
