package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	core "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/kube/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// read makes an object in a namespace from YAML.
func read(t *testing.T, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetNamespace(namespace)
	return object
}

func apply(t *testing.T, c client.Client, manager string, object *unstructured.Unstructured) {
	t.Helper()
	object = object.DeepCopy()
	err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(manager))
	if err != nil {
		t.Fatalf("applying as %s: %v", manager, err)
	}
}

const machine = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: web}
spec:
  runStrategy: Halted
  template:
    metadata: {labels: {kept: "yes"}}
    spec:
      domain:
        memory: {guest: 1.5Gi}
        devices: {disks: [{name: root, disk: {bus: virtio}}]}
      volumes: [{name: root, containerDisk: {image: "registry.example/tiny:1"}}]
`

func TestTwoManagersOwnDifferentDisks(t *testing.T) {
	e := kubetest.Start(t)
	ns := e.Namespace(t)
	other := `{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: web}, spec: {template: {spec: {
		domain: {devices: {disks: [{name: data}]}}, volumes: [{name: data, emptyDisk: {capacity: 1Gi}}]}}}}`
	apply(t, e.Client, "one", read(t, ns, machine))
	apply(t, e.Client, "two", read(t, ns, other))
	vm := &core.VirtualMachine{}
	key := client.ObjectKey{Namespace: ns, Name: "web"}
	if err := e.Client.Get(t.Context(), key, vm); err != nil {
		t.Fatal(err)
	}
	if disks := vm.Spec.Template.Spec.Domain.Devices.Disks; len(disks) != 2 || vm.Spec.Template.ObjectMeta.Labels["kept"] != "yes" {
		t.Fatalf("got disks %+v and labels %v", disks, vm.Spec.Template.ObjectMeta.Labels)
	}
	if vm.Status.ObservedGeneration != -1 {
		t.Errorf("got observed generation %d before any round", vm.Status.ObservedGeneration)
	}
	generation := vm.Generation
	apply(t, e.Client, "one", read(t, ns, machine))
	if err := e.Client.Get(t.Context(), key, vm); err != nil {
		t.Fatal(err)
	}
	if vm.Generation != generation || len(vm.Spec.Template.Spec.Volumes) != 2 {
		t.Errorf("applying the same again: generation %d became %d, volumes %+v", generation, vm.Generation, vm.Spec.Template.Spec.Volumes)
	}
}

func TestInstancesAreFoundByTheirNode(t *testing.T) {
	e := kubetest.Start(t)
	ns := e.Namespace(t)
	vmi := read(t, ns, `{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: web}, spec: {domain: {devices: {}}}}`)
	apply(t, e.Client, "one", vmi)
	placed := read(t, ns, `{status: {nodeName: node-1, migrationState: {targetNode: node-2},
		volumeStatus: [{name: root, containerDiskVolume: {checksum: 4294967295}}]}}`)
	vmi.Object["status"] = placed.Object["status"]
	err := e.Client.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(vmi), client.FieldOwner("node"))
	if err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]int{
		"status.nodeName=node-1": 1, "status.nodeName=node-2": 0,
		"status.migrationState.targetNode=node-2": 1, "status.migrationState.targetNode=node-1": 0,
	} {
		name, value, _ := strings.Cut(selector, "=")
		found := &core.VirtualMachineInstanceList{}
		err := e.Client.List(t.Context(), found, client.InNamespace(ns), client.MatchingFields{name: value})
		if err != nil || len(found.Items) != want {
			t.Errorf("%s: got %d instances, want %d: %v", selector, len(found.Items), want, err)
		}
	}
}

func TestWhatSchemasRefuse(t *testing.T) {
	e := kubetest.Start(t)
	ns := e.Namespace(t)
	bundle := func(spec string) string {
		return `{apiVersion: virtstack.io/v1alpha1, kind: Bundle, metadata: {name: b}, spec: ` + spec + `}`
	}
	vmi := func(domain string) string {
		return `{apiVersion: kubevirt.io/v1, kind: VirtualMachineInstance, metadata: {name: i}, spec: {domain: ` + domain + `}}`
	}
	for text, part := range map[string]string{
		bundle(`{source: {git: {url: "http://g/r.git", ref: {branch: main}}}, path: ./a..b, interval: 30s}`):         "",
		bundle(`{source: {git: {url: "https://g:8443/r@1.git", ref: {semver: ">=1.0.0"}}}, prune: {enabled: true}}`): "",
		bundle(`{source: {}}`): "spec.source",
		bundle(`{source: {git: {url: "http://g/r.git", ref: {}}}}`):                                                                                         "at least one of branch, tag, semver, name and commit must be set",
		bundle(`{source: {git: {url: "ssh://git@g:22/r.git", ref: {branch: a, tag: b}, verify: {configMapRef: {name: k}}}}}`):                               "",
		bundle(`{source: {git: {url: "ssh://git:p@g/r.git", ref: {branch: a}}}}`):                                                                           "must not contain credentials",
		bundle(`{source: {git: {url: "git@g:r.git", ref: {branch: a}}}}`):                                                                                   "must be a URL that starts with http://, https:// or ssh://",
		bundle(`{source: {git: {url: "http://g/r.git", ref: {name: main}}}}`):                                                                               "spec.source.git.ref.name",
		bundle(`{source: {git: {url: "http://g/r.git", ref: {branch: a}, verify: {}}}}`):                                                                    "exactly one of secretRef and configMapRef must be set",
		bundle(`{source: {git: {url: "http://g/r.git", ref: {branch: a}}, oci: {url: "oci://r/a", ref: {tag: b}}}}`):                                        "spec.source",
		bundle(`{source: {oci: {url: "oci://r:5000/a", ref: {tag: b}}}}`):                                                                                   "",
		bundle(`{source: {oci: {url: "https://r/a", ref: {tag: b}}}}`):                                                                                      "spec.source.oci.url",
		bundle(`{source: {oci: {url: "oci://r/a", ref: {}}}}`):                                                                                              "at least one of tag, semver and digest must be set",
		bundle(`{source: {sourceRef: {kind: OCIRepository, name: a}}}`):                                                                                     "",
		bundle(`{source: {sourceRef: {kind: HelmChart, name: a}}}`):                                                                                         "spec.source.sourceRef.kind",
		bundle(`{source: {git: {url: "file:///r.git", ref: {branch: a}}}}`):                                                                                 "must be a URL that starts with http://, https:// or ssh://",
		bundle(`{source: {git: {url: "https://u:p@g/r.git", ref: {branch: a}}}}`):                                                                           "must not contain credentials",
		bundle(`{source: {git: {url: "http://g/r.git", ref: {commit: abc}}}}`):                                                                              "spec.source.git.ref.commit",
		bundle(`{source: {git: {url: "http://g/r.git", ref: {branch: a}}}, path: a/../..}`):                                                                 "must not contain ..",
		bundle(`{source: {git: {url: "http://g/r.git", ref: {branch: a}}}, path: /etc}`):                                                                    "must be relative",
		bundle(`{source: {git: {url: "http://g/r.git", ref: {branch: a}}}, interval: soon}`):                                                                `spec.interval: Invalid value: "soon": must be a duration: numbers with units, such as 30s`,
		bundle(`{source: {git: {url: "http://g/r.git", ref: {branch: a}}}, timeout: 9999999999h}`):                                                          `spec.timeout: Invalid value: "9999999999h": must be a duration`,
		bundle(`{source: {git: {url: "http://g/r.git", ref: {branch: a}}}, interval: 10ms}`):                                                                `spec.interval: Invalid value: "10ms": must be at least 1s`,
		vmi(`{devices: {}, cpu: {cores: 0}}`):                                                                                                               "spec.domain.cpu.cores: Invalid value: 0",
		vmi(`{devices: {disks: [{name: a, bootOrder: -1}]}}`):                                                                                               "spec.domain.devices.disks[0].bootOrder: Invalid value: -1",
		vmi(`{devices: {disks: [{name: a}, {name: a}]}}`):                                                                                                   "spec.domain.devices.disks[1]: Duplicate value",
		`{apiVersion: kubevirt.io/v1, kind: KubeVirt, metadata: {name: k}, spec: {certificateRotateStrategy: {selfSigned: {ca: {duration: soon}}}}}`:        `spec.certificateRotateStrategy.selfSigned.ca.duration: Invalid value: "soon": must be a duration`,
		`{apiVersion: kubevirt.io/v1, kind: KubeVirt, metadata: {name: k}, spec: {certificateRotateStrategy: {selfSigned: {ca: {duration: 9999999999h}}}}}`: "must be a duration",
		`{apiVersion: kubevirt.io/v1, kind: KubeVirt, metadata: {name: k}, spec: {certificateRotateStrategy: {selfSigned: {ca: {duration: 8760h0m0.5s}}}}}`: "",
	} {
		err := e.Client.Create(t.Context(), read(t, ns, text), client.DryRunAll)
		if part == "" && err != nil || part != "" && (err == nil || !strings.Contains(err.Error(), part)) {
			t.Errorf("%s: got %v, want %q", text, err, part)
		}
	}
}

func TestKubectlExplains(t *testing.T) {
	e := kubetest.Start(t)
	dir := t.TempDir()
	arguments := []string{"explain", "vm.spec.template.spec.domain.devices.disks", "--server=" + e.Config.Host}
	for flag, content := range map[string][]byte{
		"certificate-authority": e.Config.CAData, "client-certificate": e.Config.CertData, "client-key": e.Config.KeyData,
	} {
		path := filepath.Join(dir, flag)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		arguments = append(arguments, "--"+flag+"="+path)
	}
	out, err := exec.CommandContext(t.Context(), e.Kubectl, arguments...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Disks describes disks, cdroms and luns") {
		t.Errorf("got %s: %v", out, err)
	}
}
