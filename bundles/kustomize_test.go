package bundles_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"virtstack.io/virtstack/gitops/build"
)

const kustomizedVM = `apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Always
  instancetype: {kind: VirtualMachineInstancetype, name: small}
  template:
    spec:
      domain:
        devices:
          disks:
          - {name: root, disk: {bus: virtio}}
          - {name: seed, disk: {bus: sata}}
          interfaces:
          - {name: default, masquerade: {}}
      networks:
      - {name: default, pod: {}}
      volumes:
      - {name: root, containerDisk: {image: "guest:1"}}
      - {name: data, persistentVolumeClaim: {claimName: data}}
      - {name: seed, cloudInitNoCloud: {secretRef: {name: seed}}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineInstancetype
metadata: {name: small}
spec: {cpu: {guest: 1}, memory: {guest: 1Gi}}
---
apiVersion: instancetype.kubevirt.io/v1beta1
kind: VirtualMachineClusterInstancetype
metadata: {name: wide}
spec: {cpu: {guest: 1}, memory: {guest: 1Gi}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front}
spec:
  selector: {matchLabels: {app: front}}
  template:
    metadata: {labels: {app: front}}
    spec:
      containers:
      - {name: one, image: "one:1"}
      - {name: two, image: "two:1"}
`

// repository is a commit of a team that lists our component.
func repository(t *testing.T, kustomization string) fs.FS {
	t.Helper()
	files := fstest.MapFS{
		"vms/kustomization.yaml": {Data: []byte("components: [../kustomize]\nresources: [vm.yaml]\n" + kustomization)},
		"vms/vm.yaml":            {Data: []byte(kustomizedVM)},
	}
	for _, name := range []string{"kustomization.yaml", "names.yaml", "fields.yaml", "merge-keys.json"} {
		files["kustomize/"+name] = &fstest.MapFile{Data: content(t, "kustomize/"+name)}
	}
	files["vms/fields.yaml"] = files["kustomize/fields.yaml"]
	return files
}

func kustomized(t *testing.T, kustomization string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := build.Objects(t.Context(), repository(t, kustomization), "vms", build.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		found[o.GetKind()] = o.Unstructured
	}
	return found
}

func content(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// kustomize reads no file outside of a kustomization's directory, so some stand in several: as copies, not as versions.
func TestCopiedConfigurationsAreTheSame(t *testing.T) {
	for of, copies := range map[string][]string{
		"kustomize/fields.yaml":  {"../examples/kustomize/fields.yaml"},
		"components/images.yaml": {"../overlays/dev/images.yaml", "../overlays/production/images.yaml", "../overlays/flux/infrastructure/virtstack/images.yaml"},
	} {
		for _, name := range copies {
			if string(content(t, name)) != string(content(t, of)) {
				t.Errorf("%s is not what bundles/%s is", name, of)
			}
		}
	}
}

// entry returns an entry of a list by its name.
func entry(t *testing.T, o *unstructured.Unstructured, name string, path ...string) map[string]any {
	t.Helper()
	list, _, _ := unstructured.NestedSlice(o.Object, path...)
	for _, e := range list {
		if e.(map[string]any)["name"] == name {
			return e.(map[string]any)
		}
	}
	t.Fatalf("%v has no entry %s: %v", path, name, list)
	return nil
}

func text(o map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(o, path...)
	return s
}

// Prefixes and the hashes of generated objects reach the names in our fields, and a namespace reaches what can have one.
func TestKustomizeKnowsOurNames(t *testing.T) {
	got := kustomized(t, "namePrefix: a-\nnamespace: team\nsecretGenerator: [{name: seed, literals: [userdata=x]}]\n")
	vm := got["VirtualMachine"]
	volumes := []string{"spec", "template", "spec", "volumes"}
	if name := text(entry(t, vm, "data", volumes...), "persistentVolumeClaim", "claimName"); name != "a-data" {
		t.Errorf("the claim is %q", name)
	}
	seed := text(entry(t, vm, "seed", volumes...), "cloudInitNoCloud", "secretRef", "name")
	if seed != got["Secret"].GetName() || !strings.HasPrefix(seed, "a-seed-") {
		t.Errorf("the seed is of Secret %q, the generated one is %q", seed, got["Secret"].GetName())
	}
	if name := text(vm.Object, "spec", "instancetype", "name"); name != "a-small" {
		t.Errorf("the instancetype is %q", name)
	}
	for kind, want := range map[string]string{"VirtualMachine": "team", "VirtualMachineInstancetype": "team", "VirtualMachineClusterInstancetype": ""} {
		if ns := got[kind].GetNamespace(); ns != want {
			t.Errorf("%s has namespace %q, want %q", kind, ns, want)
		}
	}
}

// images:, replicas: and template labels reach our fields where the kustomization lists fields.yaml itself.
func TestKustomizeKnowsOurFields(t *testing.T) {
	got := kustomized(t, `configurations: [fields.yaml]
images: [{name: guest, newName: registry.example/guest, digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]
labels: [{includeTemplates: true, pairs: {team: red}}]
`)
	vm := got["VirtualMachine"]
	if image := text(entry(t, vm, "root", "spec", "template", "spec", "volumes"), "containerDisk", "image"); !strings.HasPrefix(image, "registry.example/guest@sha256:0123") {
		t.Errorf("the image is %q", image)
	}
	if team := text(vm.Object, "spec", "template", "metadata", "labels", "team"); team != "red" {
		t.Errorf("the template has label team %q", team)
	}
}

// A patch of one entry of a list leaves the others alone, in our kinds and in Kubernetes' own; a new one comes beside
// them.
func TestKustomizeMergesOurLists(t *testing.T) {
	got := kustomized(t, `patches:
- patch: |
    apiVersion: kubevirt.io/v1
    kind: VirtualMachine
    metadata: {name: web}
    spec:
      template:
        spec:
          domain:
            devices:
              disks: [{name: seed, disk: {bus: virtio}}, {name: data, disk: {bus: virtio}}]
          networks: [{name: red, multus: {networkName: red}}]
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: front}
    spec: {template: {spec: {containers: [{name: two, image: "two:2"}]}}}
`)
	vm := got["VirtualMachine"]
	disks := []string{"spec", "template", "spec", "domain", "devices", "disks"}
	for name, bus := range map[string]string{"root": "virtio", "seed": "virtio", "data": "virtio"} {
		if b := text(entry(t, vm, name, disks...), "disk", "bus"); b != bus {
			t.Errorf("disk %s has bus %q, want %q", name, b, bus)
		}
	}
	networks, _, _ := unstructured.NestedSlice(vm.Object, "spec", "template", "spec", "networks")
	containers, _, _ := unstructured.NestedSlice(got["Deployment"].Object, "spec", "template", "spec", "containers")
	if len(networks) != 2 || len(containers) != 2 {
		t.Errorf("got networks %v and containers %v, want two of each", networks, containers)
	}
	if image := text(entry(t, got["Deployment"], "two", "spec", "template", "spec", "containers"), "image"); image != "two:2" {
		t.Errorf("the container has image %q", image)
	}
}

// Without the component a patch replaces the list: the test above would fail.
func TestKustomizeWithoutTheComponentReplaces(t *testing.T) {
	files := repository(t, "").(fstest.MapFS)
	files["vms/kustomization.yaml"].Data = []byte(`resources: [vm.yaml]
patches: [{patch: '{"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": "web"}, "spec": {"template": {"spec": {"networks": [{"name": "red", "multus": {"networkName": "red"}}]}}}}'}]
`)
	objects, err := build.Objects(t.Context(), files, "vms", build.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(objects, func(o build.Object) bool { return o.GetKind() == "VirtualMachine" })
	networks, _, _ := unstructured.NestedSlice(objects[at].Object, "spec", "template", "spec", "networks")
	if len(networks) != 1 {
		t.Errorf("got %v", networks)
	}
}
