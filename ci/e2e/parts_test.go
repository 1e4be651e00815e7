//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// Nor is a guest stopped by what happens to what our components stand on: the node's container runtime and the API server.
func TestGuestSurvivesItsClustersParts(t *testing.T) {
	p := placeAlone(t, "parts")
	p.create(p.vm("web"))
	p.phase("web", v1.Running, 2*time.Minute)
	p.login("web", time.Minute)
	before := p.qemu("web")
	for _, part := range []struct {
		name string
		kill func(context.Context) error
	}{{"containerd", killContainerd}, {"kube-apiserver", killAPIServer}} {
		t.Run("kill -9 "+part.name, func(t *testing.T) {
			p := place{t, p.ns}
			p.must(part.kill(t.Context()))
			p.must(theLab.Available(t.Context(), 2*time.Minute))
			next := p.vm("after-" + part.name) // all works again once this one runs
			p.create(next)
			p.phase(next.Name, v1.Running, 3*time.Minute)
			p.ready("web", time.Minute)
			if after := p.qemu("web"); after != before {
				t.Errorf("QEMU was %+v, is %+v", before, after)
			}
			p.must(theLab.Client.Delete(t.Context(), next))
			p.must(p.login("web", time.Minute).Close())
		})
	}
}

func killAPIServer(ctx context.Context) error {
	_, err := theLab.Run(ctx, "cluster", "restart", "kube-apiserver")
	return err
}

// killContainerd kills the node's containerd and returns when another runs in its place.
func killContainerd(ctx context.Context) error {
	victims := lab.Processes("containerd.toml")
	if len(victims) == 0 {
		return errors.New("no process of containerd")
	}
	for _, v := range victims {
		if err := syscall.Kill(v.PID, syscall.SIGKILL); err != nil {
			return err
		}
	}
	return lab.Until(ctx, time.Minute, "another containerd", func(context.Context) (bool, string, error) {
		found := lab.Processes("containerd.toml")
		old := slices.ContainsFunc(found, func(p lab.Process) bool { return slices.Contains(victims, p) })
		return len(found) == len(victims) && !old, fmt.Sprint(found), nil
	})
}

// ready waits until the VM's guest runs and is looked after.
func (p place) ready(name string, limit time.Duration) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), limit, "VM "+name+" to be ready", func(ctx context.Context) (bool, string, error) {
		vm := &v1.VirtualMachine{}
		if err := theLab.Client.Get(ctx, p.key(name), vm); err != nil {
			return false, "", err
		}
		is := slices.ContainsFunc(vm.Status.Conditions, func(c v1.VirtualMachineCondition) bool {
			return c.Type == v1.VirtualMachineReady && c.Status == k8sv1.ConditionTrue
		})
		return is && vm.Status.PrintableStatus == v1.VirtualMachineStatusRunning, fmt.Sprintf("%s %+v", vm.Status.PrintableStatus, vm.Status.Conditions), nil
	}))
}
