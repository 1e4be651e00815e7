package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// fluxControllers are the parts of Flux that VMs from Git need, as modules.
var fluxControllers = []string{"github.com/fluxcd/kustomize-controller", "github.com/fluxcd/source-controller"}

// Flux is Flux's source-controller and kustomize-controller, running beside a cluster with its administrator's rights.
type Flux struct {
	lab        *Lab
	kubeconfig string
	name       string // of its logs and directory
	commands   []*exec.Cmd
}

// BuildFlux builds the controllers into the cluster's programs (ci/flux). The first time takes minutes.
func (l *Lab) BuildFlux(ctx context.Context) error {
	args := []string{"-C", "ci/flux", "build", "-ldflags", "-s -w", "-o", filepath.Join(l.State(), "bin") + "/"}
	_, err := l.Run(ctx, "go", append(args, fluxControllers...)...)
	return err
}

// StartFlux installs Flux's CRDs in the cluster of the kubeconfig and starts the controllers, built where that is
// needed. Stop them at the end; they end with us at the latest.
func (l *Lab) StartFlux(ctx context.Context, name, kubeconfig string) (*Flux, error) {
	if err := l.BuildFlux(ctx); err != nil {
		return nil, err
	}
	f := &Flux{lab: l, name: name, kubeconfig: kubeconfig}
	if err := errors.Join(f.kinds(ctx), f.processes(ctx)); err != nil {
		return nil, errors.Join(err, f.Stop())
	}
	return f, nil
}

// kinds applies the CRDs that lie beside the controllers' source.
func (f *Flux) kinds(ctx context.Context) error {
	for _, module := range fluxControllers {
		dir, err := f.lab.Run(ctx, "go", "-C", "ci/flux", "list", "-m", "-f", "{{.Dir}}", module)
		if err != nil {
			return err
		}
		crds := filepath.Join(dir, "config", "crd", "bases")
		if _, err := f.lab.Kubectl(ctx, "--kubeconfig", f.kubeconfig, "apply", "--server-side", "--force-conflicts", "-f", crds); err != nil {
			return err
		}
		if _, err := f.lab.Kubectl(ctx, "--kubeconfig", f.kubeconfig, "wait", "--for=condition=Established", "--timeout=60s", "-f", crds); err != nil {
			return err
		}
	}
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n"
	cmd := f.lab.Command(ctx, "kubectl", "--kubeconfig", f.kubeconfig, "apply", "--server-side", "-f", "-")
	cmd.Stdin = strings.NewReader(namespace)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("making namespace flux-system: %w: %s", err, out)
	}
	return nil
}

func (f *Flux) processes(ctx context.Context) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", "0"))
	if err != nil {
		return err
	}
	storage := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return err
	}
	always := []string{
		"--watch-all-namespaces", "--enable-leader-election=false", "--events-addr=", "--metrics-addr=:0", "--health-addr=:0",
	}
	dir := filepath.Join(f.lab.State(), "flux-"+f.name)
	serve := []string{"--storage-path=" + dir, "--storage-addr=" + storage, "--storage-adv-addr=" + storage}
	err = errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755),
		f.start("source-controller", append(serve, always...)),
		f.start("kustomize-controller", append(always, "--requeue-dependency=2s")))
	if err != nil {
		return err
	}
	return served(ctx, time.Minute, "Flux's artifacts to be served", storage)
}

func (f *Flux) start(program string, args []string) error {
	log, err := os.Create(filepath.Join(f.lab.State(), "logs", program+"-"+f.name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(f.lab.State(), "bin", program), args...)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = append(os.Environ(), marker+"="+f.lab.State(), "KUBECONFIG="+f.kubeconfig, "RUNTIME_NAMESPACE=flux-system")
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", program, err)
	}
	f.commands = append(f.commands, cmd)
	return nil
}

// PIDs returns the controllers' process ids.
func (f *Flux) PIDs() []int {
	var pids []int
	for _, cmd := range f.commands {
		pids = append(pids, cmd.Process.Pid)
	}
	return pids
}

// Stop ends the controllers. What they applied stays.
func (f *Flux) Stop() error {
	var failed []error
	for _, cmd := range f.commands {
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			failed = append(failed, err)
		}
		_ = cmd.Wait() // it was killed: there is nothing to learn
	}
	return errors.Join(failed...)
}
