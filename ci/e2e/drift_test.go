//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/lab"
)

// fleet is everything that we ship, each document in a namespace of its own, as one commit has it. Most VMs are
// halted, so that the guests fit the machine; running has those that are not, with their run strategy.
type fleet struct {
	place
	prefix  string
	objects []*unstructured.Unstructured
}

var running = map[string]v1.VirtualMachineRunStrategy{
	"hello/hello":           v1.RunStrategyAlways,
	"instancetypes-1/sized": v1.RunStrategyAlways,
	"vm-recipes-1/seeded":   v1.RunStrategyManual,
}

func newFleet(p place, prefix string) fleet {
	f := fleet{place: p, prefix: prefix}
	vms := 0
	for _, d := range shipped(p.t) {
		ns := &unstructured.Unstructured{}
		ns.SetAPIVersion("v1")
		ns.SetKind("Namespace")
		ns.SetName(prefix + d.name)
		f.objects = append(f.objects, ns)
		for _, o := range d.objects {
			if !strings.Contains(o.GetKind(), "Cluster") {
				o.SetNamespace(ns.GetName())
			}
			if o.GetKind() == "VirtualMachine" {
				vms++
				f.run(o, d.name+"/"+o.GetName())
			}
			f.objects = append(f.objects, o)
		}
	}
	if vms < 14 {
		p.t.Fatalf("only %d VMs were found in what we ship", vms)
	}
	return f
}

func (f fleet) run(vm *unstructured.Unstructured, name string) {
	strategy, ok := running[name]
	if !ok {
		strategy = v1.RunStrategyHalted
	}
	unstructured.RemoveNestedField(vm.Object, "spec", "running")
	f.must(unstructured.SetNestedField(vm.Object, string(strategy), "spec", "runStrategy"))
}

// files returns the commit.
func (f fleet) files() map[string][]byte {
	files := map[string][]byte{}
	for i, o := range f.objects {
		raw, err := yaml.Marshal(o.Object)
		f.must(err)
		files[fmt.Sprintf("vms/%03d.yaml", i)] = raw
	}
	return files
}

func (f fleet) live(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	got := &unstructured.Unstructured{}
	got.SetGroupVersionKind(o.GroupVersionKind())
	return got, theLab.Client.Get(ctx, client.ObjectKeyFromObject(o), got)
}

// settled waits until each VM's controller has acted on it, and those that are to run do.
func (f fleet) settled() {
	f.t.Helper()
	for _, o := range f.objects {
		if o.GetKind() != "VirtualMachine" {
			continue
		}
		want := v1.VirtualMachineStatusStopped
		strategy, _, _ := unstructured.NestedString(o.Object, "spec", "runStrategy")
		if strategy == string(v1.RunStrategyAlways) {
			want = v1.VirtualMachineStatusRunning
		}
		p := place{f.t, o.GetNamespace()}
		vm := p.status(o.GetName(), want, 3*time.Minute)
		if vm.Status.ObservedGeneration != vm.Generation {
			f.t.Errorf("%s/%s: observedGeneration %d, generation %d", vm.Namespace, vm.Name, vm.Status.ObservedGeneration, vm.Generation)
		}
	}
}

// verbs asks of the VMs that run what users ask of theirs.
func (f fleet) verbs(git bool) {
	f.t.Helper()
	hello, manual := place{f.t, f.prefix + "hello"}, place{f.t, f.prefix + "vm-recipes-1"}
	ask := func(p place, args ...string) error {
		_, err := theLab.Run(f.t.Context(), "virtctl", append(args, "-n", p.ns)...)
		return err
	}
	f.must(ask(manual, "start", "seeded"))
	if err := ask(hello, "stop", "hello"); git && err == nil {
		f.t.Error("a VM that Git keeps running was stopped by hand")
	}
	f.must(ask(hello, "pause", "vm", "hello"))
	hello.status("hello", v1.VirtualMachineStatusPaused, time.Minute)
	f.must(ask(hello, "unpause", "vm", "hello"))
	old := hello.vmi("hello")
	f.must(ask(hello, "restart", "hello"))
	f.must(lab.Until(f.t.Context(), 2*time.Minute, "hello to be another VMI", func(ctx context.Context) (bool, string, error) {
		vmi := &v1.VirtualMachineInstance{}
		err := theLab.Client.Get(ctx, hello.key("hello"), vmi)
		return vmi.UID != old.UID && vmi.Status.Phase == v1.Running, string(vmi.UID), client.IgnoreNotFound(err)
	}))
	manual.status("seeded", v1.VirtualMachineStatusRunning, 2*time.Minute)
	f.must(ask(manual, "stop", "seeded"))
	manual.status("seeded", v1.VirtualMachineStatusStopped, 2*time.Minute)
}

func (p place) vmi(name string) *v1.VirtualMachineInstance {
	p.t.Helper()
	vmi := &v1.VirtualMachineInstance{}
	p.must(theLab.Client.Get(p.t.Context(), p.key(name), vmi))
	return vmi
}

// undisturbed checks that nobody but the applier wrote what it owns: a generation above 1 is a spec that was written
// once more, by anybody, at any time.
func (f fleet) undisturbed(applier string) map[string]string {
	f.t.Helper()
	when := map[string]string{}
	for _, o := range f.objects {
		name := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		got, err := f.live(f.t.Context(), o)
		if err != nil {
			f.t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.Contains(o.GetAPIVersion(), "kubevirt.io/") {
			when[name] = f.ownedBy(applier, got)
		}
		for _, path := range missing(o.Object, got.Object, "") {
			f.t.Errorf("%s: live and committed differ at %s", name, path)
		}
	}
	return when
}

// ownedBy checks who owns what of an object of ours, and returns when the applier wrote it.
func (f fleet) ownedBy(applier string, got *unstructured.Unstructured) string {
	f.t.Helper()
	name := got.GetKind() + " " + got.GetNamespace() + "/" + got.GetName()
	if got.GetGeneration() != 1 {
		f.t.Errorf("%s has generation %d", name, got.GetGeneration())
	}
	applied, others := owned(f.t, got.GetManagedFields(), applier)
	if applied.fields.Empty() {
		f.t.Errorf("%s: %s owns nothing", name, applier)
	}
	for manager, set := range others {
		if both := set.Intersection(applied.fields); !both.Empty() {
			f.t.Errorf("%s: %s owns with %s:\n%s", name, manager, applier, both)
		}
		set.Iterate(func(p fieldpath.Path) {
			if *p[0].FieldName == "spec" {
				f.t.Errorf("%s: %s owns %s", name, manager, p)
			}
		})
	}
	return applied.time
}

type ownership struct {
	fields *fieldpath.Set
	time   string
}

func owned(t *testing.T, entries []metav1.ManagedFieldsEntry, applier string) (ownership, map[string]*fieldpath.Set) {
	t.Helper()
	applied, others := ownership{fields: fieldpath.NewSet()}, map[string]*fieldpath.Set{}
	for _, e := range entries {
		set := &fieldpath.Set{}
		if err := set.FromJSON(e.FieldsV1.GetRawReader()); err != nil {
			t.Fatal(err)
		}
		if e.Manager == applier {
			applied.fields, applied.time = applied.fields.Union(set), e.Time.UTC().Format(time.RFC3339)
			continue
		}
		others[e.Manager+"/"+e.Subresource] = set
	}
	return applied, others
}

// missing returns the paths at which live lacks or differs from what is wanted.
func missing(want, live any, path string) []string {
	var found []string
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return []string{path}
		}
		for k, v := range w {
			found = append(found, missing(v, l[k], path+"."+k)...)
		}
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return []string{path}
		}
		for i, v := range w {
			found = append(found, missing(v, l[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	default:
		if a, b := fmt.Sprint(want), fmt.Sprint(live); a != b {
			return []string{fmt.Sprintf("%s: %s, live %s", path, a, b)}
		}
	}
	return found
}

// Design 7.2 and 7.5: everything that we ship, applied by Flux, used, and applied again: nothing is written, and nobody
// but Flux ever wrote what Flux owns.
func TestNoDriftUnderFlux(t *testing.T) {
	f := newFluxed(t, "drift")
	all := newFleet(f.place, "drift-")
	f.commit("All that is shipped", all.files())
	f.apply(fluxClusterYAML)
	f.kustomization("True", time.Minute)
	all.settled()
	all.undisturbed("kustomize-controller")
	all.verbs(true)
	all.settled()
	before := all.undisturbed("kustomize-controller")
	again := f.commit("Say more in the readme", map[string][]byte{"README.md": []byte("VMs\n")})
	f.kustomization("True", time.Minute, again)
	for name, when := range all.undisturbed("kustomize-controller") {
		if when != before[name] {
			t.Errorf("%s was written by the second sync: at %s, before at %s", name, when, before[name])
		}
	}
}

// The same with a client that compares what it applied last, what is there and what it wants, as Argo CD does.
func TestNoDriftUnderThreeWayDiff(t *testing.T) {
	p := newPlace(t, "threeway")
	all := newFleet(p, "threeway-")
	file := filepath.Join(t.TempDir(), "all.yaml")
	var text strings.Builder
	for _, o := range all.objects {
		retarget(o)
		o.SetAnnotations(marked(o))
		raw, err := json.Marshal(o.Object)
		p.must(err)
		fmt.Fprintf(&text, "---\n%s\n", raw)
	}
	p.must(os.WriteFile(file, []byte(text.String()), 0o644))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		if _, err := theLab.Kubectl(ctx, "delete", "--ignore-not-found", "--timeout=170s", "-f", file); err != nil {
			t.Error(err)
		}
	})
	_, err := theLab.Kubectl(t.Context(), "apply", "-f", file, "--field-manager=argocd-controller")
	p.must(err)
	all.settled()
	all.verbs(true)
	all.settled()
	all.undisturbed("argocd-controller")
	if out, err := theLab.Kubectl(t.Context(), "diff", "-f", file, "--field-manager=argocd-controller"); err != nil {
		t.Errorf("live and committed differ: %v\n%s", err, out)
	}
	out, err := theLab.Kubectl(t.Context(), "apply", "-f", file, "--field-manager=argocd-controller")
	p.must(err)
	for line := range strings.Lines(out) {
		if !strings.HasSuffix(strings.TrimSpace(line), " unchanged") {
			t.Errorf("a second apply says: %s", line)
		}
	}
}

// retarget gives the cluster's instancetypes and preferences names of this test, also where a VM names them.
func retarget(o *unstructured.Unstructured) {
	if strings.Contains(o.GetKind(), "Cluster") {
		o.SetName("threeway-" + o.GetName())
	}
	for _, field := range []string{"instancetype", "preference"} {
		name, found, _ := unstructured.NestedString(o.Object, "spec", field, "name")
		if o.GetKind() == "VirtualMachine" && found {
			_ = unstructured.SetNestedField(o.Object, "threeway-"+name, "spec", field, "name")
		}
	}
}

// marked returns the object's annotations with the one by which Argo CD knows its own.
func marked(o *unstructured.Unstructured) map[string]string {
	a := o.GetAnnotations()
	if a == nil {
		a = map[string]string{}
	}
	group, _, found := strings.Cut(o.GetAPIVersion(), "/")
	if !found {
		group = ""
	}
	a["argocd.argoproj.io/tracking-id"] = fmt.Sprintf("fleet:%s/%s:%s/%s", group, o.GetKind(), o.GetNamespace(), o.GetName())
	return a
}
