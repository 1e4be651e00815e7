//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	k8sv1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/health"
	"virtstack.io/virtstack/ci/lab"
)

// samples, when not empty, has the objects that are seen in their states written to ci/health/testdata.
var samples = os.Getenv("WRITE_HEALTH_SAMPLES")

// album keeps every version of a namespace's objects that the API server tells of: many states are short.
type album struct {
	place
	tools *health.Tools
	mu    sync.Mutex
	seen  map[string][]*unstructured.Unstructured // by kind/name
}

func (p place) album() *album {
	p.t.Helper()
	tools, err := health.Open(os.DirFS(theLab.Root))
	p.must(err)
	a := &album{place: p, tools: tools, seen: map[string][]*unstructured.Unstructured{}}
	for kind, version := range map[string]string{
		"VirtualMachine": "kubevirt.io/v1", "VirtualMachineInstance": "kubevirt.io/v1", "Bundle": "virtstack.io/v1alpha1",
	} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(version)
		list.SetKind(kind + "List")
		w, err := theLab.Client.Watch(p.t.Context(), list, client.InNamespace(p.ns))
		p.must(err)
		go func() {
			for event := range w.ResultChan() {
				if u, ok := event.Object.(*unstructured.Unstructured); ok {
					a.add(u)
				}
			}
		}()
	}
	return a
}

func (a *album) add(u *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := u.GetKind() + "/" + u.GetName()
	a.seen[key] = append(a.seen[key], u)
}

// find returns the last version of an object that is in the state of the sample.
func (a *album) find(name string, like *unstructured.Unstructured) (found *unstructured.Unstructured, seen string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var signs []string
	for _, u := range a.seen[like.GetKind()+"/"+name] {
		signs = append(signs, health.Sign(u))
		if health.Sign(u) == health.Sign(like) && observed(u) {
			found = u
		}
	}
	return found, strings.Join(slices.Compact(signs), "; ")
}

// observed tells whether the status is of this spec.
func observed(u *unstructured.Unstructured) bool {
	of, has, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return !has || of == u.GetGeneration() || u.GetDeletionTimestamp() != nil
}

// judged waits until an object has been in a state, and compares what Git tools make of it with the documented table.
func (a *album) judged(kind, state, name string, limit time.Duration) {
	a.t.Helper()
	s := health.State{Kind: kind, Name: state}
	like, err := s.Sample(os.DirFS(theLab.Root))
	a.must(err)
	var live *unstructured.Unstructured
	what := fmt.Sprintf("%s %s to be %s (%s)", kind, name, state, health.Sign(like))
	a.must(lab.Until(a.t.Context(), limit, what, func(context.Context) (bool, string, error) {
		var seen string
		live, seen = a.find(name, like)
		return live != nil, seen, nil
	}))
	a.compare(s, like, live)
}

func (a *album) compare(s health.State, like, live *unstructured.Unstructured) {
	a.t.Helper()
	want, err := a.tools.Of(a.t.Context(), like)
	a.must(err)
	got, err := a.tools.Of(a.t.Context(), live)
	a.must(err)
	want.Says, got.Says = "", ""
	if got != want {
		a.t.Errorf("%s %s %s: got %+v, want %+v", s.Kind, live.GetName(), s.Name, got, want)
	}
	if samples == "" {
		return
	}
	kept := live.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "ownerReferences"} {
		unstructured.RemoveNestedField(kept.Object, "metadata", field)
	}
	raw, err := yaml.Marshal(kept.Object)
	a.must(err)
	a.must(os.WriteFile(filepath.Join(theLab.Root, s.File()), raw, 0o644))
}

func (a *album) patch(kind, name, patch string) {
	a.t.Helper()
	_, err := theLab.Kubectl(a.t.Context(), "patch", kind, name, "-n", a.ns, "--type=merge", "-p", patch)
	a.must(err)
}

func withStrategy(s v1.VirtualMachineRunStrategy) func(*v1.VirtualMachine) {
	return func(vm *v1.VirtualMachine) { vm.Spec.RunStrategy = &s }
}

func withoutDisk(vm *v1.VirtualMachine) {
	vm.Spec.Template.Spec.Volumes[0].ContainerDisk.Path = "/disk/no-such.img"
}

// What docs/gitops/health.md says of a state is so of an object that is in it.
func TestHealthThatGitToolsRead(t *testing.T) {
	p := newPlace(t, "health")
	a := p.album()
	p.create(p.vm("node", func(vm *v1.VirtualMachine) {
		vm.Spec.Template.Spec.NodeSelector = map[string]string{"no-such": "label"}
	}))
	p.create(p.vm("image", func(vm *v1.VirtualMachine) {
		vm.Spec.Template.Spec.Volumes[0].ContainerDisk.Image = "localhost/no-such-image:1"
	}))
	p.create(p.vm("loop", withoutDisk))
	p.create(p.vm("spent", withoutDisk, withStrategy(v1.RunStrategyOnce)))
	p.create(p.vm("off", withStrategy(v1.RunStrategyManual)))
	p.create(p.vm("done", withStrategy(v1.RunStrategyOnce)))
	p.create(p.vm("web"))
	a.platform()
	a.life()
	p.must(p.shell("done").Send("poweroff -f\n"))
	const vm, vmi = "VirtualMachine", "VirtualMachineInstance"
	for _, c := range []struct{ kind, state, name string }{
		{vm, "manual-never-started", "off"},
		{vm, "first-failed-start", "loop"}, {vm, "one-start-and-it-failed", "spent"}, {vmi, "failed", "spent"},
		{vm, "unschedulable", "node"}, {vmi, "unschedulable", "node"},
		{vm, "image-pull-error", "image"}, {vmi, "image-pull-error", "image"},
		{vm, "shut-down-by-its-guest", "done"}, {vmi, "succeeded", "done"},
		{vm, "unschedulable-past-its-deadline", "node"}, {vm, "image-pull-error-past-its-deadline", "image"},
		{vm, "crash-loop", "loop"},
	} {
		a.judged(c.kind, c.state, c.name, 3*time.Minute)
	}
}

// life goes through what one VM can be from its start to its end.
func (a *album) life() {
	const vm, vmi = "VirtualMachine", "VirtualMachineInstance"
	both := func(state string, limit time.Duration) {
		a.judged(vm, state, "web", limit)
		a.judged(vmi, state, "web", limit)
	}
	options := filepath.Join(a.t.TempDir(), "options.json")
	a.must(os.WriteFile(options, []byte("{}"), 0o600))
	ask := func(verb string) {
		path := "/apis/subresources.kubevirt.io/v1/namespaces/" + a.ns + "/virtualmachineinstances/web/" + verb
		_, err := theLab.Kubectl(a.t.Context(), "replace", "--raw", path, "-f", options)
		a.must(err)
	}
	both("running", 3*time.Minute)
	both("starting", time.Second)
	a.login("web", time.Minute)
	ask("pause")
	a.paused("web", k8sv1.ConditionTrue)
	both("paused", time.Minute)
	ask("unpause")
	a.patch("vm", "web", `{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"160Mi"}}}}}}`)
	a.judged(vm, "restart-required", "web", time.Minute)
	a.patch("vm", "web", `{"spec":{"template":{"spec":{"domain":{"memory":{"guest":"128Mi"}}}}}}`)
	a.patch("vm", "web", `{"spec":{"runStrategy":"Halted"}}`)
	a.judged(vm, "stopping", "web", time.Minute)
	a.judged(vmi, "terminating", "web", time.Minute)
	a.judged(vm, "halted", "web", time.Minute)
	a.patch("vm", "web", `{"spec":{"runStrategy":"Always"}}`)
	a.status("web", v1.VirtualMachineStatusRunning, 2*time.Minute)
	a.must(theLab.Client.Delete(a.t.Context(), a.vm("web")))
	a.judged(vm, "terminating", "web", time.Minute)
}

// platform judges the installed KubeVirt.
func (a *album) platform() {
	a.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kubevirt.io/v1")
	list.SetKind("KubeVirtList")
	a.must(theLab.Client.List(a.t.Context(), list))
	s := health.State{Kind: "KubeVirt", Name: "deployed"}
	like, err := s.Sample(os.DirFS(theLab.Root))
	a.must(err)
	if len(list.Items) != 1 {
		a.t.Fatalf("%d KubeVirts, want 1", len(list.Items))
	}
	a.compare(s, like, &list.Items[0])
}

// A Bundle's health is that of what it last did.
func TestHealthOfABundle(t *testing.T) {
	f := newTenant(t, "bundle-health")
	a := f.album()
	off := f.commit("Add web, halted", map[string][]byte{"vms/web.yaml": f.manifest(f.vm("web", halted))})
	f.follow()
	f.bundle("True", time.Minute, off)
	a.judged("Bundle", "ready", "vms", time.Second)
	f.commit("Break the YAML", map[string][]byte{"vms/broken.yaml": []byte("kind: [VirtualMachine\nmetadata:\n")})
	a.judged("Bundle", "failed-build", "vms", time.Minute)
	mended := f.commit("Mend it", map[string][]byte{"vms/broken.yaml": nil})
	f.bundle("True", time.Minute, mended)
	a.patch("bundle", "vms", `{"spec":{"suspend":true}}`)
	a.judged("Bundle", "suspended", "vms", time.Minute)
}
