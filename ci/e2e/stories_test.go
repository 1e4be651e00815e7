//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/ci/lab"
)

// What happens in repositories, told of a Bundle and of Flux on a fleet that is off: each ends as a team expects, and a
// VM that no commit means is not written.
func TestGitStoriesOfBundles(t *testing.T) { tell(newTold(t, "stories-bundle", byBundle)) }

func TestGitStoriesOfFlux(t *testing.T) { tell(newTold(t, "stories-flux", byFlux)) }

func tell(f told) {
	files := f.fleet("one")
	maps.Copy(files, map[string][]byte{"later/README": []byte("none\n"), "later/kustomization.yaml": []byte("resources: []\n"),
		"platform/kustomization.yaml": []byte("resources: []\n")})
	first := f.commit("Add a fleet", files)
	f.apply(f.setup)
	f.settled(first)
	f.refusedAmongFifty()
	f.history(first)
	f.names()
	f.dependency()
	f.platform()
	f.strange()
	f.suspension()
	f.branchDeleted()
	f.serverAway()
}

func (f told) story(what string) {
	f.t.Helper()
	f.t.Log(time.Now().Format(time.TimeOnly), what)
}

// fleet are fifty VMs with a label.
func (f told) fleet(stage string) map[string][]byte {
	files := map[string][]byte{}
	for i := range 50 {
		name := fmt.Sprintf("vm-%02d", i)
		files["vms/"+name+".yaml"] = f.manifest(f.vm(name, halted, func(vm *v1.VirtualMachine) { vm.Labels = map[string]string{"stage": stage} }))
	}
	return files
}

func (f told) refusedAmongFifty() {
	f.story("one of fifty changed VMs is refused: none is written; mended, all are")
	before := f.machines()
	files := f.fleet("two")
	files["vms/vm-30.yaml"] = f.manifest(f.vm("vm-30", halted, func(vm *v1.VirtualMachine) { vm.Spec.Template.Spec.Volumes = nil }))
	f.commit("Stage two, with a mistake", files)
	f.says(f.applies, "vms", "False", "vm-30", "spec.template.spec.domain.devices.disks[0].name")
	f.untouched(before)
	f.settled(f.commit("Mend it", map[string][]byte{"vms/vm-30.yaml": f.fleet("two")["vms/vm-30.yaml"]}))
	f.stage("two")
}

// stage fails unless all of the fleet is there and has the label.
func (f told) stage(want string) {
	f.t.Helper()
	for i := range 50 {
		if vm := f.stored(f.t.Context(), fmt.Sprintf("vm-%02d", i)); vm.Labels["stage"] != want {
			f.t.Errorf("VM %s is of stage %s, want %s", vm.Name, vm.Labels["stage"], want)
		}
	}
}

func (f told) history(first string) {
	f.story("a revert goes back, and so does a branch that is rewritten")
	f.git("-c", "user.name=virtstack", "-c", "user.email=virtstack@localhost", "revert", "--no-edit", "--no-commit", "HEAD~2..HEAD")
	f.settled(f.commit("Revert to stage one", nil))
	f.stage("one")
	f.settled(f.commit("Add another", map[string][]byte{"vms/more.yaml": f.manifest(f.vm("more", halted))}))
	f.git("reset", "--quiet", "--hard", first)
	f.git("push", "--quiet", "--force", "origin", "main")
	f.settled(first)
	f.gone(&v1.VirtualMachine{}, "more", time.Minute)
	f.stage("one")
}

func (f told) names() {
	f.story("a file's name says nothing; a VM's other name is another VM")
	before, raw := f.machines(), f.fleet("one")["vms/vm-00.yaml"]
	f.settled(f.commit("Move a file", map[string][]byte{"vms/vm-00.yaml": nil, "vms/shop/site.yaml": raw}))
	f.untouched(before)
	f.settled(f.commit("Rename the VM", map[string][]byte{"vms/shop/site.yaml": []byte(strings.Replace(string(raw), "name: vm-00", "name: site", 1))}))
	f.gone(&v1.VirtualMachine{}, "vm-00", time.Minute)
	f.status("site", v1.VirtualMachineStatusStopped, time.Minute)
	f.settled(f.commit("Name it as it was", map[string][]byte{"vms/vm-00.yaml": raw, "vms/shop/site.yaml": nil}))
}

func (f told) dependency() {
	f.story("what depends on a directory waits until that is well")
	after := f.manifest(f.vm("after", halted))
	f.commit("A VM, and a mistake in what it depends on", map[string][]byte{
		"vms/broken.yaml": []byte("kind: [VirtualMachine\n"), "later/kustomization.yaml": nil, "later/after.yaml": after})
	f.says(f.applies, "vms", "False", "broken.yaml")
	f.says(f.applies, "later", "False", "vms")
	if _, there := f.machines()["after"]; there {
		f.t.Error("a VM was made before what it depends on")
	}
	f.settled(f.commit("Mend it", map[string][]byte{"vms/broken.yaml": nil}))
	f.status("after", v1.VirtualMachineStatusStopped, time.Minute)
}

func (f told) platform() {
	f.story("one commit brings a kind and an object of it, a namespace and its VM")
	vm := f.vm("web", halted)
	vm.Namespace = f.ns + "-new"
	f.settled(f.commit("A platform in one commit", map[string][]byte{"platform/kustomization.yaml": nil, "platform/all.yaml": fmt.Appendf(f.manifest(vm), `---
apiVersion: %[1]s.example.test/v1
kind: Thing
metadata: {name: thing, namespace: %[1]s-new}
---
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s-new}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.%[1]s.example.test}
spec:
  group: %[1]s.example.test
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`, f.ns)}))
	_, err := theLab.Kubectl(f.t.Context(), "get", "things."+f.ns+".example.test/thing", "vm/web", "-n", f.ns+"-new")
	f.must(err)
	f.settled(f.commit("And takes it away again", map[string][]byte{"platform/kustomization.yaml": []byte("resources: []\n"), "platform/all.yaml": nil}))
	f.must(lab.Until(f.t.Context(), time.Minute, "all of the platform to be gone", func(ctx context.Context) (bool, string, error) {
		out, err := theLab.Kubectl(ctx, "get", "namespace/"+f.ns+"-new", "crd/things."+f.ns+".example.test", "--ignore-not-found")
		return out == "", out, err
	}))
}

func (f told) strange() {
	f.story("a team can't do more than its account")
	before := f.machines()
	f.commit("Be an administrator", map[string][]byte{
		"vms/more.yaml": f.manifest(f.vm("more", halted)),
		"vms/power.yaml": fmt.Appendf(nil, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: %s-power}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: git, namespace: %[1]s}]\n", f.ns)})
	f.says(f.applies, "vms", "False", f.ns+"-power", "forbidden", "system:serviceaccount:"+f.ns+":git")
	f.untouched(before)
	f.settled(f.commit("Don't", map[string][]byte{"vms/more.yaml": nil, "vms/power.yaml": nil}))
}

func (f told) suspension() {
	f.story("nothing happens while suspended, and all of it after")
	before := f.machines()
	f.suspend(true)
	last := f.commit("Stage three", f.fleet("three"))
	f.says(f.applies, "platform", "True", last)
	f.untouched(before)
	f.suspend(false)
	f.settled(last)
	f.stage("three")
}

func (f told) suspend(is bool) {
	f.t.Helper()
	_, err := theLab.Kubectl(f.t.Context(), "patch", f.applies.Kind+"."+f.applies.Group, "vms", "-n", f.ns, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"suspend":%v}}`, is))
	f.must(err)
}

func (f told) branchDeleted() {
	f.story("a branch that is deleted takes nothing along")
	before := f.machines()
	f.git("push", "--quiet", "origin", "main:kept")
	_, err := theLab.Run(f.t.Context(), "git", "-C", f.served(), "update-ref", "-d", "refs/heads/main")
	f.must(err)
	f.says(f.reads, "vms", "False", "main")
	f.untouched(before)
	f.git("push", "--quiet", "origin", "main")
	f.says(f.reads, "vms", "True")
	f.untouched(before)
}

// away is how long the Git server is: many times as long as the tools wait between two tries.
const away = time.Minute

func (f told) serverAway() {
	f.story("a Git server that is away is said, changes nothing, and what was committed meanwhile comes after")
	before := f.machines()
	f.door.shut()
	end := time.Now().Add(away)
	last := f.commit("Stage four", f.fleet("four"))
	f.says(f.reads, "vms", "False", f.door.addr, "refused")
	f.must(lab.Until(f.t.Context(), 2*away, "the time to pass", func(context.Context) (bool, string, error) { return time.Now().After(end), "", nil }))
	f.untouched(before)
	f.says(f.reads, "vms", "False", f.door.addr, "refused")
	f.door.unlock()
	f.settled(last)
	f.stage("four")
}

// Two Bundles of one path: the second is refused what the first has, by name, and takes nothing along when it goes.
func TestTwoBundlesDontShareAnObject(t *testing.T) {
	f := newTenant(t, "twins")
	hash := f.commit("Add web", map[string][]byte{"vms/web.yaml": f.manifest(f.vm("web", halted))})
	f.follow()
	f.bundle("True", time.Minute, hash)
	before := f.stored(t.Context(), "web")
	twin := told{f, byBundle, nil}
	f.apply(strings.Replace(tenantYAML, "name: vms", "name: twin", 1))
	twin.says(bundles, "twin", "False", "web", "another Bundle: "+f.ns+"/vms")
	_, err := theLab.Kubectl(t.Context(), "delete", "bundle", "twin", "-n", f.ns, "--timeout=60s")
	f.must(err)
	f.bundle("True", time.Minute, f.commit("Say more", map[string][]byte{"README.md": []byte("VMs\n")}))
	if after := f.stored(t.Context(), "web"); after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("web was %s %s, is %s %s", before.UID, before.ResourceVersion, after.UID, after.ResourceVersion)
	}
}
