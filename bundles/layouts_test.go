package bundles_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/kube/kubetest"
)

// layout is a repository as a user has it after copying overlays/NAME and, into virtstack/, the release.
type layout struct {
	t   *testing.T
	dir string
}

func newLayout(t *testing.T, name string) layout {
	t.Helper()
	l := layout{t, t.TempDir()}
	for from, to := range map[string]string{
		"../overlays/" + name: ".", "../bundles": "virtstack/bundles", "../overlays/production": "virtstack/overlays/production",
	} {
		if err := os.CopyFS(filepath.Join(l.dir, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l layout) built(dir string) []build.Object {
	l.t.Helper()
	objects, err := build.Objects(l.t.Context(), os.DirFS(l.dir), path.Clean(dir), build.DefaultLimits)
	if err != nil {
		l.t.Fatal(err)
	}
	return objects
}

// kinds returns the objects of a kind.
func kinds(objects []build.Object, kind string) []build.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o build.Object) bool { return o.GetKind() != kind })
}

// has tells whether an object of that namespace and name is among them.
func has(all []build.Object, namespace, name string) bool {
	return slices.ContainsFunc(all, func(o build.Object) bool { return o.GetNamespace() == namespace && o.GetName() == name })
}

// Everything that Flux is told to look at is there: paths that build, sources, accounts, what is to come first.
func TestFluxLayoutHangsTogether(t *testing.T) {
	l := newLayout(t, "flux")
	accounts := kinds(l.built("infrastructure/tenants"), "ServiceAccount")
	for _, cluster := range []string{"production", "dev"} {
		objects := l.built("clusters/" + cluster)
		steps := kinds(objects, "Kustomization")
		for _, s := range steps {
			l.hangsTogether(s, objects, accounts)
		}
		l.sharded(steps)
	}
	steps := kinds(l.built("clusters/production"), "Kustomization")
	for name, want := range map[string]bool{"virtstack": false, "kubevirt": false, "instancetypes": false, "team-a": true} {
		i := slices.IndexFunc(steps, func(o build.Object) bool { return o.GetName() == name })
		if got, _, _ := unstructured.NestedBool(steps[i].Object, "spec", "prune"); got != want {
			t.Errorf("Kustomization %s prunes: %v", name, got)
		}
	}
}

func (l layout) hangsTogether(s build.Object, objects, accounts []build.Object) {
	l.t.Helper()
	if len(l.built(text(s.Object, "spec", "path"))) == 0 {
		l.t.Errorf("%s: nothing at its path", s)
	}
	if !has(kinds(objects, "GitRepository"), s.GetNamespace(), text(s.Object, "spec", "sourceRef", "name")) {
		l.t.Errorf("%s: its source is not there", s)
	}
	if account := text(s.Object, "spec", "serviceAccountName"); account != "" && !has(accounts, s.GetNamespace(), account) {
		l.t.Errorf("%s: its account %s is not there", s, account)
	}
	before, _, _ := unstructured.NestedSlice(s.Object, "spec", "dependsOn")
	for _, b := range before {
		if name := b.(map[string]any)["name"].(string); !has(kinds(objects, "Kustomization"), s.GetNamespace(), name) {
			l.t.Errorf("%s: what it depends on, %s, is not there", s, name)
		}
	}
}

// sharded checks that each directory of VMs has a Kustomization of its own, which acts with an account of its own.
func (l layout) sharded(steps []build.Object) {
	l.t.Helper()
	teams, err := os.ReadDir(filepath.Join(l.dir, "vms"))
	if err != nil || len(teams) < 2 {
		l.t.Fatalf("%d teams: %v", len(teams), err)
	}
	for _, team := range teams {
		found := slices.ContainsFunc(steps, func(s build.Object) bool {
			return text(s.Object, "spec", "path") == "./vms/"+team.Name() && text(s.Object, "spec", "targetNamespace") == team.Name() &&
				text(s.Object, "spec", "serviceAccountName") == team.Name()
		})
		if !found {
			l.t.Errorf("no Kustomization for vms/%s", team.Name())
		}
	}
}

// Everything that Argo CD is told to look at is there, and a team's project allows what the team has.
func TestArgoLayoutHangsTogether(t *testing.T) {
	l := newLayout(t, "argo")
	objects := l.built("clusters/production")
	for _, a := range kinds(objects, "Application") {
		if len(l.built(text(a.Object, "spec", "source", "path"))) == 0 {
			t.Errorf("%s: nothing at its path", a)
		}
		options, _, _ := unstructured.NestedStringSlice(a.Object, "spec", "syncPolicy", "syncOptions")
		if !slices.Contains(options, "ServerSideApply=true") {
			t.Errorf("%s: sync options %v: the CRDs are too large for an annotation", a, options)
		}
	}
	namespaces, projects := kinds(l.built("infrastructure/tenants"), "Namespace"), kinds(objects, "AppProject")
	teams, err := os.ReadDir(filepath.Join(l.dir, "vms"))
	if err != nil || len(teams) != len(projects) || len(teams) != len(namespaces) {
		t.Fatalf("%d teams, %d projects, %d namespaces: %v", len(teams), len(projects), len(namespaces), err)
	}
	for i, team := range teams {
		if projects[i].GetName() != team.Name() || namespaces[i].GetName() != team.Name() {
			t.Errorf("vms/%s has project %s and namespace %s", team.Name(), projects[i].GetName(), namespaces[i].GetName())
		}
		allowed, _, _ := unstructured.NestedSlice(projects[i].Object, "spec", "namespaceResourceWhitelist")
		for _, o := range l.built("vms/" + team.Name()) {
			kind := map[string]any{"group": o.GroupVersionKind().Group, "kind": o.GetKind()}
			if !slices.ContainsFunc(allowed, func(a any) bool { return fmt.Sprint(a) == fmt.Sprint(kind) }) {
				t.Errorf("%s: project %s doesn't allow it", o, team.Name())
			}
		}
	}
}

// What the layouts install is what overlays/production does, with the images that the user names, everywhere.
func TestLayoutsInstallTheRelease(t *testing.T) {
	for _, name := range []string{"flux", "argo"} {
		l := newLayout(t, name)
		file := filepath.Join(l.dir, "infrastructure", "virtstack", "kustomization.yaml")
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		mine := strings.ReplaceAll(string(raw), "newName: registry.example.com/", "newName: mirror.example.org/team/")
		if err := os.WriteFile(file, []byte(mine), 0o644); err != nil {
			t.Fatal(err)
		}
		got := l.built("infrastructure/virtstack")
		if want := built(t, "overlays/production"); len(got) != len(want) {
			t.Errorf("%s: %d objects, overlays/production has %d", name, len(got), len(want))
		}
		var all []string
		for _, d := range kinds(got, "Deployment") {
			all = append(append(all, images(d.Unstructured)...), told(d.Unstructured)...)
		}
		others := slices.DeleteFunc(slices.Clone(all), func(i string) bool { return strings.HasPrefix(i, "mirror.example.org/team/") })
		if len(all) < 3 || len(others) > 0 {
			t.Errorf("%s: of images %v these are not the user's: %v", name, all, others)
		}
	}
}

// told returns the images in a Deployment's environment.
func told(o *unstructured.Unstructured) []string {
	var found []string
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		env, _, _ := unstructured.NestedSlice(c.(map[string]any), "env")
		for _, e := range env {
			if value, ok := e.(map[string]any)["value"].(string); ok && strings.Contains(value, "virt-launcher:") {
				found = append(found, value)
			}
		}
	}
	return found
}

// The VMs, the tenants and the KubeVirt of a layout are what an API server takes, as they are.
func TestLayoutsAreTaken(t *testing.T) {
	env := kubetest.Start(t)
	for _, name := range []string{"flux", "argo"} {
		l := newLayout(t, name)
		objects := slices.Concat(l.built("infrastructure/kubevirt"), l.built("infrastructure/instancetypes"), l.built("infrastructure/tenants"), l.built("vms/team-a"), l.built("vms/team-b"))
		for _, o := range objects {
			o := o.DeepCopy()
			if o.GetKind() != "Namespace" {
				o.SetNamespace("default") // the real one isn't there when nothing is written
			}
			if err := env.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s, %s: %v", name, o.GetName(), err)
			}
		}
	}
}

// The layouts have the same VMs and the same release: what differs is the tool.
func TestLayoutsHaveTheSameVMs(t *testing.T) {
	for _, dir := range []string{"vms", "infrastructure/virtstack", "infrastructure/kubevirt", "infrastructure/instancetypes"} {
		err := fs.WalkDir(os.DirFS("../overlays/flux"), dir, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			a, err1 := os.ReadFile("../overlays/flux/" + file)
			b, err2 := os.ReadFile("../overlays/argo/" + file)
			if err1 != nil || err2 != nil || string(a) != string(b) {
				t.Errorf("%s: differs between overlays/flux and overlays/argo (%v, %v)", file, err1, err2)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
