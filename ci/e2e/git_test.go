//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/ci/lab"
)

// tenant is a namespace with a repository and a Bundle that follows it.
type tenant struct {
	place
	repo *lab.Repo
}

func newTenant(t *testing.T, name string) tenant {
	t.Helper()
	p := newPlace(t, name)
	// A repository outlives the cluster that followed it: each run has its own.
	repo, err := lab.Clone(t.Context(), fmt.Sprintf("%s-%d", p.ns, time.Now().Unix()), filepath.Join(t.TempDir(), "repo"))
	p.must(err)
	return tenant{p, repo}
}

// follow makes the Bundle. The repository should have a commit by then.
func (f tenant) follow() {
	f.t.Helper()
	f.apply(tenantYAML)
}

// apply applies a manifest that leaves the tenant's namespace and repository open.
func (f tenant) apply(manifest string) {
	f.t.Helper()
	cmd := theLab.Command(f.t.Context(), "kubectl", "apply", "--server-side", "-n", f.ns, "-f", "-")
	cmd.Stdin = strings.NewReader(strings.NewReplacer("NAMESPACE", f.ns, "REPOSITORY", f.repo.URL).Replace(manifest))
	if out, err := cmd.CombinedOutput(); err != nil {
		f.t.Fatalf("%v: %s", err, out)
	}
}

func (f tenant) commit(message string, files map[string][]byte) string {
	f.t.Helper()
	hash, err := f.repo.Commit(f.t.Context(), message, files)
	f.must(err)
	return hash
}

func (f tenant) manifest(vm *v1.VirtualMachine) []byte {
	f.t.Helper()
	raw, err := yaml.Marshal(vm)
	f.must(err)
	return raw
}

// bundle waits until the Bundle's Ready condition has the status and its message holds all the texts.
func (f tenant) bundle(ready string, limit time.Duration, texts ...string) *v1alpha1.Bundle {
	f.t.Helper()
	b := &v1alpha1.Bundle{}
	f.must(lab.Until(f.t.Context(), limit, fmt.Sprintf("Bundle with Ready=%s and %q", ready, texts), func(ctx context.Context) (bool, string, error) {
		*b = v1alpha1.Bundle{}
		if err := theLab.Client.Get(ctx, f.key("vms"), b); err != nil {
			return false, "", err
		}
		c := meta.FindStatusCondition(b.Status.Conditions, "Ready")
		if c == nil {
			return false, "no Ready condition", nil
		}
		seen := fmt.Sprintf("%s %s: %s (applied %s)", c.Status, c.Reason, c.Message, b.Status.LastAppliedRevision)
		return string(c.Status) == ready && containsAll(c.Message+b.Status.LastAppliedRevision, texts), seen, nil
	}))
	return b
}

func TestCommitBecomesRunningVM(t *testing.T) {
	f := newTenant(t, "git")
	web := f.vm("web", func(vm *v1.VirtualMachine) { vm.Spec.Template.ObjectMeta.Labels = map[string]string{"tier": "back"} })
	first := f.commit("Add web", map[string][]byte{"vms/web.yaml": f.manifest(web)})
	f.follow()
	f.phase("web", v1.Running, 2*time.Minute)
	f.login("web", time.Minute)
	f.bundle("True", 30*time.Second, first)
	vm := f.status("web", v1.VirtualMachineStatusRunning, 10*time.Second)

	t.Run("a second sync of the same commit writes nothing", func(t *testing.T) {
		_, err := theLab.Kubectl(t.Context(), "annotate", "bundle", "vms", "-n", f.ns, "reconcile.virtstack.io/requestedAt="+time.Now().Format(time.RFC3339Nano), "--overwrite")
		f.must(err)
		second := f.commit("Say more in the readme", map[string][]byte{"README.md": []byte("VMs\n")})
		f.bundle("True", time.Minute, second)
		again := f.status("web", v1.VirtualMachineStatusRunning, 10*time.Second)
		if again.Generation != vm.Generation || again.ResourceVersion != vm.ResourceVersion {
			t.Errorf("VM went from generation %d version %s to %d %s", vm.Generation, vm.ResourceVersion, again.Generation, again.ResourceVersion)
		}
	})
	t.Run("start and stop do not fight the commit", func(t *testing.T) {
		_, err := theLab.Run(t.Context(), "virtctl", "stop", "-n", f.ns, "web")
		if err == nil || !containsAll(err.Error(), []string{"virt-bundles", "runStrategy"}) {
			t.Errorf("virtctl stop of a VM that Git owns: %v; want a refusal that names the manager and the field to commit", err)
		}
		f.status("web", v1.VirtualMachineStatusRunning, 5*time.Second)
	})
	t.Run("a file with another name is the same VM, and its guest runs on", func(t *testing.T) {
		before := lab.Processes("qemu-system", f.ns)
		raw := f.manifest(web)
		f.bundle("True", time.Minute, f.commit("Move web", map[string][]byte{"vms/web.yaml": nil, "vms/shop/web.yaml": raw}))
		f.bundle("True", time.Minute, f.commit("Move it back", map[string][]byte{"vms/web.yaml": raw, "vms/shop/web.yaml": nil}))
		again := f.status("web", v1.VirtualMachineStatusRunning, 10*time.Second)
		if after := lab.Processes("qemu-system", f.ns); len(before) != 1 || again.UID != vm.UID || again.Generation != vm.Generation || fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("VM %s of generation %d with %v became %s of %d with %v", vm.UID, vm.Generation, before, again.UID, again.Generation, after)
		}
	})
	qemu := f.qemu("web")
	f.edits(web, func(commit string) { f.bundle("True", time.Minute, commit) })
	if after := f.qemu("web"); after != qemu {
		t.Errorf("QEMU was %+v, is %+v", qemu, after)
	}
	t.Run("a bad commit leaves the last good state", func(t *testing.T) {
		f.badCommits(first)
	})
	t.Run("a commit that removes the VM removes it", func(t *testing.T) {
		last := f.commit("Remove web", map[string][]byte{"vms/web.yaml": nil, "vms/kustomization.yaml": []byte("resources: []\n")})
		f.gone(&v1.VirtualMachine{}, "web", time.Minute)
		f.bundle("True", 30*time.Second, last)
		if left := lab.Processes("qemu-system", f.ns); len(left) != 0 {
			t.Errorf("QEMU left: %v", left)
		}
	})
}

func (f tenant) badCommits(good string) {
	f.t.Helper()
	before := f.bundle("True", time.Minute, "")
	broken := f.commit("Break the YAML", map[string][]byte{"vms/broken.yaml": []byte("kind: [VirtualMachine\nmetadata:\n")})
	f.bundle("False", time.Minute, "broken.yaml", broken[:12])

	bad := f.vm("refused", func(vm *v1.VirtualMachine) { vm.Spec.Template.Spec.Volumes = nil })
	fine := f.vm("fine", func(vm *v1.VirtualMachine) { halted(vm) })
	refused := f.commit("A VM that admission refuses, and one it doesn't", map[string][]byte{
		"vms/broken.yaml": nil, "vms/refused.yaml": f.manifest(bad), "vms/fine.yaml": f.manifest(fine)})
	b := f.bundle("False", time.Minute, "refused", "spec.template.spec.domain.devices.disks[0].name", refused[:12])
	if b.Status.LastAppliedRevision != before.Status.LastAppliedRevision {
		f.t.Errorf("lastAppliedRevision moved from %s to %s", before.Status.LastAppliedRevision, b.Status.LastAppliedRevision)
	}
	if err := theLab.Client.Get(f.t.Context(), f.key("fine"), &v1.VirtualMachine{}); err == nil {
		f.t.Error("half of a refused commit was applied")
	}
	f.status("web", v1.VirtualMachineStatusRunning, 5*time.Second)
	mended := f.commit("Mend it", map[string][]byte{"vms/refused.yaml": nil})
	f.bundle("True", time.Minute, mended)
	f.status("fine", v1.VirtualMachineStatusStopped, 30*time.Second)
}

func halted(vm *v1.VirtualMachine) {
	s := v1.RunStrategyHalted
	vm.Spec.RunStrategy = &s
}

func TestSourceThatCantBeHad(t *testing.T) {
	f := newTenant(t, "source")
	f.commit("Nothing yet", map[string][]byte{"vms/kustomization.yaml": []byte("resources: []\n")})
	f.follow()
	f.bundle("True", time.Minute, "")
	patch := func(p string) {
		_, err := theLab.Kubectl(t.Context(), "patch", "bundle", "vms", "-n", f.ns, "--type=merge", "-p", p)
		f.must(err)
	}
	patch(`{"spec":{"source":{"git":{"ref":{"branch":"no-such-branch"}}}}}`)
	f.bundle("False", time.Minute, "no-such-branch")
	patch(`{"spec":{"source":{"git":{"url":"http://172.30.0.1:1/x.git","ref":{"branch":"main"}}}}}`)
	f.bundle("False", time.Minute, "172.30.0.1:1")
	patch(`{"spec":{"source":{"git":{"url":"` + f.repo.URL + `"}}}}`)
	f.bundle("True", time.Minute, "")
}
