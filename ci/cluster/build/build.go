// Package build makes what a cluster is started from: Debian's packages, programs from Go modules, images. Whether a
// program is stale is for the go command to say, so building again is cheap.
package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"virtstack.io/virtstack/ci/cluster/layout"
)

// version is what the programs of Kubernetes say of themselves; it is that of k8s.io/kubernetes in go.mod.
const version = "v1.37.2"

const (
	strip = "-s -w"
	stamp = strip + " -X k8s.io/component-base/version.gitVersion=" + version +
		" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=37"
)

// program is one call of "go build".
type program struct {
	name     string // for people
	dir      string // below the module, with a go.mod of its own where not empty
	out      string // below bin; ends in a slash where packages give the names
	packages []string
	ldflags  string
	tags     string
	cgo      bool
}

const (
	containerd = "github.com/containerd/containerd/v2/cmd/"
	plugins    = "github.com/containernetworking/plugins/plugins/"
)

// programs share one module's versions and flags with the product: so they share the build cache.
var programs = []program{
	{name: "kubernetes and etcd", out: "kube", packages: []string{"./kube"}, ldflags: stamp},
	{name: "containerd", out: "/", packages: []string{containerd + "containerd", containerd + "containerd-shim-runc-v2", containerd + "ctr"}},
	{name: "CNI plugins", out: "cni/", packages: []string{
		plugins + "main/bridge", plugins + "main/loopback", plugins + "main/ptp", plugins + "ipam/host-local", plugins + "meta/portmap",
	}},
	{name: "CNI meta-plugin", out: "cni/", packages: []string{"./multinet"}},
	// What enters a container's namespaces in runc is C.
	{name: "runc", out: "/", packages: []string{"github.com/opencontainers/runc"}, tags: "seccomp,urfave_cli_no_docs", cgo: true},
	{name: "coredns", out: "coredns", packages: []string{"./dns"}},
	{name: "pause", out: "pause", packages: []string{"./pause"}},
	{name: "local-path-provisioner", dir: "storage", out: "/", packages: []string{"github.com/rancher/local-path-provisioner"}},
}

// links are the names under which the one binary of Kubernetes and etcd acts.
var links = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "etcd"}

// All builds everything and tells progress to out.
func All(ctx context.Context, d layout.Dir, out io.Writer) error {
	if err := packages(ctx, out); err != nil {
		return fmt.Errorf("installing Debian packages: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(d.Bin(), "cni"), 0o755); err != nil {
		return err
	}
	for _, p := range programs {
		if err := step(out, "building "+p.name, func() error { return p.build(ctx, d) }); err != nil {
			return err
		}
	}
	for _, name := range links {
		if err := link(d.Program(name)); err != nil {
			return err
		}
	}
	return step(out, "making images", func() error { return images(d) })
}

// link makes a name for the multi-call binary beside it.
func link(file string) error {
	if to, err := os.Readlink(file); err == nil && to == "kube" {
		return nil
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink("kube", file)
}

// arguments returns what the go command is called with.
func (p program) arguments(bin string) []string {
	ldflags := p.ldflags
	if ldflags == "" {
		ldflags = strip
	}
	args := []string{"build", "-ldflags", ldflags}
	if p.tags != "" {
		args = append(args, "-tags", p.tags)
	}
	out := filepath.Join(bin, p.out)
	if p.out[len(p.out)-1] == '/' {
		out += "/"
	}
	return append(append(args, "-o", out), p.packages...)
}

func (p program) build(ctx context.Context, d layout.Dir) error {
	cmd := exec.CommandContext(ctx, "go", p.arguments(d.Bin())...)
	cmd.Dir = filepath.Join(d.Module(), p.dir)
	cgo := "CGO_ENABLED=0"
	if p.cgo {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), cgo, "GOFLAGS=-buildvcs=false -trimpath", "GOWORK=off")
	if raw, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w:\n%s", err, raw)
	}
	return nil
}

// stillEvery is how often a long step says that it goes on: Kubernetes takes a quarter of an hour the first time.
const stillEvery = 30 * time.Second

// step does one thing and says what and how long.
func step(out io.Writer, what string, do func() error) error {
	start := time.Now()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(stillEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				fmt.Fprintf(out, "  %-32s %6.0f s ...\n", what, time.Since(start).Seconds())
			}
		}
	}()
	err := do()
	close(done)
	<-ended
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Fprintf(out, "  %-32s %6.1f s\n", what, time.Since(start).Seconds())
	return nil
}
