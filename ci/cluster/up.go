package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"virtstack.io/virtstack/ci/cluster/api"
	"virtstack.io/virtstack/ci/cluster/await"
	"virtstack.io/virtstack/ci/cluster/build"
	"virtstack.io/virtstack/ci/cluster/control"
	"virtstack.io/virtstack/ci/cluster/host"
	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/node"
)

// patience is how long a started cluster may take until all of it is ready.
const patience = 4 * time.Minute

func sysctls(d layout.Dir) host.Sysctls {
	return host.Sysctls{Root: "/proc/sys", File: filepath.Join(d.Run(), "sysctl.json")}
}

// starting is one run of up.
type starting struct {
	dir   layout.Dir
	out   io.Writer
	nodes int
	begun time.Time
}

func (s *starting) say(format string, args ...any) {
	fmt.Fprintf(s.out, "  %-32s %6.1f s\n", fmt.Sprintf(format, args...), time.Since(s.begun).Seconds())
}

func up(ctx context.Context, d layout.Dir, out io.Writer, nodes int) error {
	if nodes < 1 || nodes > layout.MaxNodes {
		return fmt.Errorf("--nodes: Invalid value: %d: must be 1 to %d", nodes, layout.MaxNodes)
	}
	return locked(d, out, func() error {
		s := &starting{d, out, nodes, time.Now()}
		return s.run(ctx)
	})
}

func (s *starting) run(ctx context.Context) error {
	if missing := s.missing(ctx); missing != nil && len(missing) == 0 {
		fmt.Fprintf(s.out, "the cluster is running; KUBECONFIG=%s\n", s.dir.Kubeconfig())
		return nil
	}
	fmt.Fprintln(s.out, "building")
	if err := build.All(ctx, s.dir, s.out); err != nil {
		return err
	}
	s.begun = time.Now()
	fmt.Fprintln(s.out, "starting")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	missing := s.missing(ctx)
	if missing == nil {
		if err := s.control(ctx); err != nil {
			return err
		}
		missing = s.wanted()
	}
	if err := s.join(ctx, missing); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "the cluster is up; KUBECONFIG=%s\n", s.dir.Kubeconfig())
	return nil
}

// missing returns the nodes that don't run, or nil if the cluster has to be started from the beginning: the control
// plane or a node that did run is broken.
func (s *starting) missing(ctx context.Context) []layout.Node {
	if len(control.Dead(s.dir)) > 0 {
		return nil
	}
	if c, err := api.New(s.dir); err != nil || !c.Ready(ctx) {
		return nil
	}
	running := node.Running(s.dir)
	missing := []layout.Node{}
	for _, n := range s.wanted() {
		if _, ok := running[n]; !ok {
			missing = append(missing, n)
		}
	}
	return missing
}

func (s *starting) wanted() []layout.Node {
	var all []layout.Node
	for i := 1; i <= s.nodes; i++ {
		all = append(all, s.dir.Node(i))
	}
	return all
}

// control clears away what a crash may have left and starts the control plane.
func (s *starting) control(ctx context.Context) error {
	if err := clear(ctx, s.dir); err != nil {
		return fmt.Errorf("clearing what an earlier cluster left: %w", err)
	}
	if err := errors.Join(sysctls(s.dir).Set(), host.AddBridge()); err != nil {
		return err
	}
	if err := control.Start(ctx, s.dir); err != nil {
		return fmt.Errorf("starting the control plane: %w", err)
	}
	s.say("control plane ready")
	return s.forget(ctx)
}

// forget deletes the Nodes of an earlier, larger cluster.
func (s *starting) forget(ctx context.Context) error {
	c, err := api.New(s.dir)
	if err != nil {
		return err
	}
	names, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	wanted := func(name string) bool {
		return slices.ContainsFunc(s.wanted(), func(n layout.Node) bool { return n.Name() == name })
	}
	for _, name := range names {
		if wanted(name) {
			continue
		}
		if err := c.ForgetNode(ctx, name); err != nil {
			return err
		}
		s.say("%s forgotten", name)
	}
	return nil
}

// join starts nodes and waits until they, and the Pods that every cluster needs, are ready.
func (s *starting) join(ctx context.Context, nodes []layout.Node) error {
	c, err := api.New(s.dir)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	since := time.Now()
	for _, n := range nodes {
		if err := node.Start(ctx, s.dir, n, program); err != nil {
			return err
		}
	}
	if err := c.Apply(ctx, filepath.Join(s.dir.Module(), "manifests")); err != nil {
		return err
	}
	if err := s.load(ctx, nodes); err != nil {
		return err
	}
	for _, n := range nodes {
		ready := func(ctx context.Context) (bool, error) { return c.NodeReady(ctx, n.Name(), since), nil }
		if err := await.True(ctx, n.Name()+" to be Ready", 200*time.Millisecond, ready); err != nil {
			return fmt.Errorf("%w\nits log, %s, ends so:\n%s", err, s.dir.Log(n.Name()+"-init"), node.LastLines(s.dir, n))
		}
		s.say("%s ready", n.Name())
	}
	return s.system(ctx, c, nodes, since)
}

// load gives the nodes that were just started their images.
func (s *starting) load(ctx context.Context, nodes []layout.Node) error {
	for _, n := range nodes {
		count, err := node.Load(ctx, s.dir, n)
		if err != nil {
			return fmt.Errorf("loading images into %s: %w", n.Name(), err)
		}
		s.say("%s: %d images imported", n.Name(), count)
	}
	return nil
}

// system waits for DNS and storage. Where node1 was started, their Pods are there anew; else they have been all along.
func (s *starting) system(ctx context.Context, c *api.Client, nodes []layout.Node, since time.Time) error {
	if len(nodes) < s.nodes {
		since = time.Time{}
	}
	err := await.True(ctx, "the Pods of kube-system", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		ready, all, err := c.PodsReady(ctx, "kube-system", since)
		return err == nil && all >= 2 && ready == all, nil
	})
	if err == nil {
		s.say("DNS and storage ready")
	}
	return err
}
