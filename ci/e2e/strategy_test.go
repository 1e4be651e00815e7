//go:build e2e

package e2e

import (
	"syscall"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"
)

// No verb and no end of a guest changes the run strategy that was committed; and a dot is part of a name, for Pod, guest
// and verbs. Sources: kubevirt/kubevirt#7295, #10639, #1092, #13679.
func TestRerunOnFailureIsKept(t *testing.T) {
	p := newPlace(t, "rerun")
	const web = "db.primary"
	p.create(p.vm("primary", halted))
	p.create(p.vm(web, func(vm *v1.VirtualMachine) {
		strategy := v1.RunStrategyRerunOnFailure
		vm.Spec.RunStrategy = &strategy
	}))
	vmi := p.phase(web, v1.Running, 2*time.Minute)
	virtctl := func(verb string) {
		t.Helper()
		_, err := theLab.Run(t.Context(), "virtctl", verb, "vm/"+web, "-n", p.ns)
		p.must(err)
	}
	kept := func(after string) {
		t.Helper()
		if vm := p.stored(t.Context(), web); vm.Generation != 1 || *vm.Spec.RunStrategy != v1.RunStrategyRerunOnFailure {
			t.Errorf("after %s: generation %d, strategy %s", after, vm.Generation, *vm.Spec.RunStrategy)
		}
	}
	virtctl("stop")
	p.gone(&v1.VirtualMachineInstance{}, web, time.Minute)
	p.status(web, v1.VirtualMachineStatusStopped, 30*time.Second)
	virtctl("start")
	vmi = p.another(web, vmi.UID, v1.Running, 2*time.Minute)
	kept("stop and start")
	p.must(syscall.Kill(p.qemu(web).PID, syscall.SIGKILL))
	vmi = p.another(web, vmi.UID, v1.Running, 2*time.Minute)
	kept("QEMU was killed")
	virtctl("restart")
	p.another(web, vmi.UID, v1.Running, 2*time.Minute)
	kept("restart")
	if pod := p.launcher(); pod.Spec.Hostname != "db" {
		t.Errorf("host name %q, want db", pod.Spec.Hostname)
	}
	console, err := theLab.Console(t.Context(), p.ns, web)
	p.must(err)
	defer console.Close()
	p.must(console.Expect(t.Context(), "db login:", busy*time.Minute))
	if vm := p.stored(t.Context(), "primary"); vm.Generation != 1 {
		t.Errorf("VM primary has generation %d: want 1", vm.Generation)
	}
}

// A VM whose guest can't be made is tried at longer and longer intervals, and obeys in between. Source:
// kubevirt/kubevirt#5905.
func TestCrashLoopObeys(t *testing.T) {
	p := newPlace(t, "loop")
	missing := func(vm *v1.VirtualMachine) {
		vm.Spec.Template.Spec.Volumes[0].ContainerDisk.Path = "/disk/no-such.img"
	}
	p.create(p.vm("web", missing))
	p.status("web", v1.VirtualMachineStatusCrashLoopBackOff, 2*time.Minute)
	_, err := theLab.Run(t.Context(), "virtctl", "stop", "web", "-n", p.ns)
	p.must(err)
	p.status("web", v1.VirtualMachineStatusStopped, 20*time.Second)
	p.gone(&v1.VirtualMachineInstance{}, "web", 20*time.Second)

	_, err = theLab.Run(t.Context(), "virtctl", "start", "web", "-n", p.ns)
	p.must(err)
	p.status("web", v1.VirtualMachineStatusCrashLoopBackOff, 2*time.Minute)
	begin := time.Now()
	p.must(theLab.Client.Delete(t.Context(), p.vm("web")))
	p.gone(&v1.VirtualMachine{}, "web", time.Minute)
	p.gone(&v1.VirtualMachineInstance{}, "web", time.Until(begin.Add(time.Minute)))
}
