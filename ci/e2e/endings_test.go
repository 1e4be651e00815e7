//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// neverStarts waits until a VM is said to fail with each start, and why.
func (p place) neverStarts(name string, texts ...string) {
	p.t.Helper()
	vm := p.status(name, v1.VirtualMachineStatusCrashLoopBackOff, 90*time.Second)
	i := slices.IndexFunc(vm.Status.Conditions, func(c v1.VirtualMachineCondition) bool { return c.Type == v1.VirtualMachineFailure })
	if i < 0 || !containsAll(vm.Status.Conditions[i].Message, texts) {
		p.t.Errorf("conditions are %v, want Failure with %q", vm.Status.Conditions, texts)
	}
}

// A guest that its launcher can never make isn't called Starting: the VM says that its starts fail, and why, and runs
// as soon as its spec is mended.
func TestAGuestThatCanNeverStart(t *testing.T) {
	p := newPlace(t, "never")
	p.create(p.vm("web", func(vm *v1.VirtualMachine) {
		vm.Spec.Template.Spec.Volumes[0].ContainerDisk.Path = "/disk/nope.img"
	}))
	p.neverStarts("web", "spec.template.spec.volumes[0].containerDisk.path", `"/disk/nope.img"`, "there is no /disk/nope.img")
	_, err := theLab.Kubectl(t.Context(), "patch", "vm", "web", "-n", p.ns, "--type=json", "-p",
		`[{"op":"remove","path":"/spec/template/spec/volumes/0/containerDisk/path"}]`)
	p.must(err)
	p.phase("web", v1.Running, time.Minute)
	p.qemu("web")
}

// A launcher that is killed is told by its signal; what it logged is nobody's reason.
func TestAKilledLauncherIsToldByItsSignal(t *testing.T) {
	p := newPlace(t, "killed")
	p.create(p.vm("web", func(vm *v1.VirtualMachine) {
		s := v1.RunStrategyManual
		vm.Spec.RunStrategy = &s
	}))
	_, err := theLab.Run(t.Context(), "virtctl", "start", "-n", p.ns, "web")
	p.must(err)
	p.phase("web", v1.Running, 2*time.Minute)
	launchers := lab.Processes("/usr/bin/virt-launcher", p.ns)
	if len(launchers) != 1 {
		t.Fatalf("launchers: %v", launchers)
	}
	p.must(syscall.Kill(launchers[0].PID, syscall.SIGKILL))
	vmi := p.phase("web", v1.Failed, time.Minute)
	if vmi.Status.Reason != "LauncherKilled" {
		t.Errorf("reason %q, want LauncherKilled", vmi.Status.Reason)
	}
	if left := lab.QEMU(p.ns + "_web"); len(left) != 0 {
		t.Errorf("QEMU outlives its launcher: %v", left)
	}
	const want = "the launcher was killed by SIGKILL (exit code 137)"
	told := func(ctx context.Context) (bool, string, error) {
		out, err := theLab.Kubectl(ctx, "get", "events,vmi,vm,pod", "-n", p.ns, "-o", "yaml")
		for _, log := range []string{"starting the guest\"", "libvirt version", `"msg":`} {
			if strings.Contains(out, log) {
				t.Errorf("the log shows: %q", log)
			}
		}
		return strings.Contains(out, want), "no event says so", err
	}
	p.must(lab.Until(t.Context(), 20*time.Second, want, told))
}
