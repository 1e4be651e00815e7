//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/ci/lab"
)

// The life of a VM that Flux applies: each commit does to the guest what it should, and nothing else.
func TestFluxRunsWhatIsCommitted(t *testing.T) {
	f := newFluxed(t, "flux")
	web := f.vm("web", func(vm *v1.VirtualMachine) { vm.Spec.Template.ObjectMeta.Labels = map[string]string{"tier": "back"} })
	first := f.commit("Add web and spare", map[string][]byte{
		"vms/web.yaml": f.manifest(web), "vms/spare.yaml": f.manifest(f.vm("spare", func(vm *v1.VirtualMachine) { halted(vm) }))})
	f.apply(fluxYAML)
	f.phase("web", v1.Running, 2*time.Minute)
	f.kustomization("True", 2*time.Minute, first)
	before := f.qemu("web")
	f.edits(web, func(commit string) { f.kustomization("True", time.Minute, commit) })
	if after := f.qemu("web"); after != before {
		t.Errorf("QEMU was %+v, is %+v", before, after)
	}
	t.Run("a stop by hand is refused and names the Kustomization", func(t *testing.T) {
		_, err := theLab.Run(t.Context(), "virtctl", "stop", "-n", f.ns, "web")
		if err == nil || !containsAll(err.Error(), []string{"kustomize-controller", f.ns + "/vms", "runStrategy"}) {
			t.Errorf("virtctl stop of a VM that Flux owns: %v; want manager, Kustomization and field", err)
		}
	})
	f.suspendAndPrune(web, before)
}

// edits are commits that change a running VM: each does to the guest what it should, and a plan says so before.
func (f tenant) edits(web *v1.VirtualMachine, settled func(commit string)) {
	f.t.Helper()
	f.t.Run("a label of the template changes hot", func(*testing.T) {
		hot := web.DeepCopy()
		hot.Spec.Template.ObjectMeta.Labels["tier"] = "front"
		settled(f.commit("Move web to the front", map[string][]byte{"vms/web.yaml": f.manifest(hot)}))
		f.labelled("web", "tier", "front")
		f.restartRequired("web", corev1.ConditionFalse)
	})
	f.t.Run("memory waits for a restart, and the VM stays healthy", func(t *testing.T) {
		more := web.DeepCopy()
		size := resource.MustParse("160Mi")
		more.Spec.Template.Spec.Domain.Memory.Guest = &size
		larger := f.commit("Give web more memory", map[string][]byte{"vms/web.yaml": f.manifest(more)})
		f.restartRequired("web", corev1.ConditionTrue)
		settled(larger)
		said, err := theLab.Run(t.Context(), "virtctl", "plan", filepath.Join(f.repo.Dir, "vms"), "--from", "HEAD~1", "--to", "HEAD", "--offline")
		if err == nil || !containsAll(said+err.Error(), []string{"restart", "web", "spec.template.spec.domain.memory.guest"}) {
			t.Errorf("virtctl plan says %s (%v); want a restart for web's memory, and that it disrupts", said, err)
		}
	})
	f.t.Run("a revert takes the wait away", func(*testing.T) {
		settled(f.commit("Revert web", map[string][]byte{"vms/web.yaml": f.manifest(web)}))
		f.restartRequired("web", corev1.ConditionFalse)
	})
}

func (f fluxed) suspendAndPrune(web *v1.VirtualMachine, before lab.Process) {
	f.t.Run("nothing happens while suspended", func(t *testing.T) {
		f.suspended(true)
		off := web.DeepCopy()
		halted(off)
		f.fetched(f.commit("Stop web", map[string][]byte{"vms/web.yaml": f.manifest(off)}))
		f.status("web", v1.VirtualMachineStatusRunning, 5*time.Second)
		if after := f.qemu("web"); after != before {
			t.Errorf("QEMU was %+v, is %+v", before, after)
		}
		f.suspended(false)
		f.status("web", v1.VirtualMachineStatusStopped, 2*time.Minute)
		f.kustomization("True", time.Minute)
	})
	f.t.Run("what a commit removes is pruned", func(t *testing.T) {
		removed := f.commit("Remove web", map[string][]byte{"vms/web.yaml": nil})
		f.gone(&v1.VirtualMachine{}, "web", time.Minute)
		f.kustomization("True", time.Minute, removed)
		f.status("spare", v1.VirtualMachineStatusStopped, 5*time.Second)
		if left := lab.Processes("qemu-system", f.ns); len(left) != 0 {
			t.Errorf("QEMU left: %v", left)
		}
	})
}

// labelled waits until the VMI has the label.
func (p place) labelled(name, key, value string) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), 30*time.Second, "VMI "+name+" to be labelled", func(ctx context.Context) (bool, string, error) {
		vmi := &v1.VirtualMachineInstance{}
		err := theLab.Client.Get(ctx, p.key(name), vmi)
		return vmi.Labels[key] == value, vmi.Labels[key], err
	}))
}

// restartRequired waits until the VM's controller has acted on the last generation and says whether a restart is needed.
func (p place) restartRequired(name string, want corev1.ConditionStatus) {
	p.t.Helper()
	p.must(lab.Until(p.t.Context(), time.Minute, "RestartRequired="+string(want), func(ctx context.Context) (bool, string, error) {
		vm := &v1.VirtualMachine{}
		err := theLab.Client.Get(ctx, p.key(name), vm)
		is := slices.ContainsFunc(vm.Status.Conditions, func(c v1.VirtualMachineCondition) bool {
			return c.Type == v1.VirtualMachineRestartRequired && c.Status == corev1.ConditionTrue
		})
		return vm.Status.ObservedGeneration == vm.Generation && is == (want == corev1.ConditionTrue), string(vm.Status.PrintableStatus), err
	}))
}

// A commit that is wrong leaves what the last good one made, and Flux says what is wrong with it.
func TestFluxKeepsTheLastGoodState(t *testing.T) {
	f := newFluxed(t, "fluxbad")
	off := func(vm *v1.VirtualMachine) { halted(vm) }
	good := f.commit("Add web", map[string][]byte{"vms/web.yaml": f.manifest(f.vm("web", off))})
	f.apply(fluxYAML)
	f.kustomization("True", time.Minute, good)
	before := f.stored(t.Context(), "web")

	f.commit("Break the YAML", map[string][]byte{"vms/broken.yaml": []byte("kind: [VirtualMachine\nmetadata:\n")})
	f.kustomization("False", time.Minute, "broken.yaml", good)
	files := map[string][]byte{"vms/broken.yaml": nil, "vms/refused.yaml": f.manifest(f.vm("refused", off, func(vm *v1.VirtualMachine) { vm.Spec.Template.Spec.Volumes = nil }))}
	for _, name := range []string{"fine-a", "fine-b", "more-fine"} {
		files["vms/"+name+".yaml"] = f.manifest(f.vm(name, off))
	}
	f.commit("A VM that admission refuses, among others that it doesn't", files)
	f.kustomization("False", time.Minute, "refused", "spec.template.spec.domain.devices.disks[0].name", good)
	vms := &v1.VirtualMachineList{}
	f.must(theLab.Client.List(t.Context(), vms, client.InNamespace(f.ns)))
	if len(vms.Items) != 1 || vms.Items[0].ResourceVersion != before.ResourceVersion {
		t.Errorf("after two bad commits there are %d VMs, want web alone and untouched", len(vms.Items))
	}
	f.kustomization("True", time.Minute, f.commit("Mend it", map[string][]byte{"vms/refused.yaml": nil}))
	f.status("more-fine", v1.VirtualMachineStatusStopped, 30*time.Second)
	f.rewritten(good)
	f.kustomization("True", time.Minute, good)
	f.gone(&v1.VirtualMachine{}, "more-fine", time.Minute)
	if after := f.stored(t.Context(), "web"); after.Generation != before.Generation || after.UID != before.UID {
		t.Errorf("web was %s of generation %d, is %s of %d", before.UID, before.Generation, after.UID, after.Generation)
	}
}

// rewritten takes the branch back to a commit, by force.
func (f fluxed) rewritten(commit string) {
	f.t.Helper()
	for _, args := range [][]string{{"reset", "--quiet", "--hard", commit}, {"push", "--quiet", "--force", "origin", "main"}} {
		_, err := theLab.Run(f.t.Context(), "git", append([]string{"-C", f.repo.Dir}, args...)...)
		f.must(err)
	}
}

// One object has one Git tool: a Bundle of the same path is refused what Flux has, and when it goes all of it stays.
func TestBundleLeavesFluxItsVMs(t *testing.T) {
	f := newFluxed(t, "fluxshare")
	first := f.commit("Add web", map[string][]byte{"vms/web.yaml": f.manifest(f.vm("web", func(vm *v1.VirtualMachine) { halted(vm) }))})
	f.apply(fluxYAML)
	f.kustomization("True", time.Minute, first)
	before := f.stored(t.Context(), "web")
	f.follow()
	f.bundle("False", time.Minute, "web", "kustomize-controller from Kustomization "+f.ns+"/vms")
	_, err := theLab.Kubectl(t.Context(), "delete", "bundle", "vms", "-n", f.ns, "--timeout=60s")
	f.must(err)
	f.kustomization("True", time.Minute, f.commit("Say more in the readme", map[string][]byte{"README.md": []byte("VMs\n")}))
	after := f.stored(t.Context(), "web")
	if after.UID != before.UID || after.Generation != before.Generation {
		t.Errorf("web was %s of generation %d, is %s of %d", before.UID, before.Generation, after.UID, after.Generation)
	}
}
