package bundles_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/kube/kubetest"
)

// The overlay for production is one that an API server takes, whole, and nothing in it says which image by default but
// the overlay's own list.
func TestProductionOverlayIsTaken(t *testing.T) {
	env := kubetest.Start(t)
	kinds := map[string][]string{}
	for _, o := range built(t, "overlays/production") {
		kinds[o.GetKind()] = append(kinds[o.GetKind()], o.GetName())
		o := o.DeepCopy()
		if o.GetNamespace() == "kubevirt" {
			o.SetNamespace("default") // the real one isn't there when nothing is written
		}
		taken := client.ApplyConfigurationFromUnstructured(o)
		if err := env.Client.Apply(t.Context(), taken, client.FieldOwner("test"), client.ForceOwnership, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
		for _, image := range images(o) {
			if !strings.HasPrefix(image, "registry.example.com/") {
				t.Errorf("%s %s has image %s", o.GetKind(), o.GetName(), image)
			}
		}
	}
	for _, d := range kinds["Deployment"] {
		if !slices.Contains(kinds["PodDisruptionBudget"], d) || d != "virt-bundles" && !slices.Contains(kinds["NetworkPolicy"], d) {
			t.Errorf("%s has no budget or no policy: %v", d, kinds)
		}
	}
}

func images(o *unstructured.Unstructured) []string {
	var found []string
	containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		found = append(found, c.(map[string]any)["image"].(string))
	}
	return found
}

// portsOf returns the ports of a workload's containers, or those of a NetworkPolicy's rules, which are written alike.
func portsOf(t *testing.T, o *unstructured.Unstructured, key string, path ...string) []string {
	t.Helper()
	var names []string
	list, _, _ := unstructured.NestedSlice(o.Object, path...)
	for _, e := range list {
		ports, _, _ := unstructured.NestedSlice(e.(map[string]any), "ports")
		for _, p := range ports {
			names = append(names, p.(map[string]any)[key].(string))
		}
	}
	return names
}

// Each port that a NetworkPolicy names is one of a container that it is about.
func TestNetworkPoliciesNamePorts(t *testing.T) {
	ports := map[string][]string{}
	for _, o := range append(built(t, "bundles/operator"), built(t, "bundles/components")...) {
		ports[o.GetName()] = append(ports[o.GetName()], portsOf(t, o.Unstructured, "name", "spec", "template", "spec", "containers")...)
	}
	named := 0
	for _, o := range built(t, "overlays/production") {
		if o.GetKind() != "NetworkPolicy" {
			continue
		}
		about, _, _ := unstructured.NestedString(o.Object, "spec", "podSelector", "matchLabels", "kubevirt.io")
		for _, name := range portsOf(t, o.Unstructured, "port", "spec", "ingress") {
			named++
			if about != "" && !slices.Contains(ports[about], name) {
				t.Errorf("NetworkPolicy %s: %s has no port %s, but %v", o.GetName(), about, name, ports[about])
			}
		}
	}
	if named < 5 {
		t.Errorf("only %d ports are named", named)
	}
}

// The KubeVirt of each overlay is one that the API server takes.
func TestOverlaysKubeVirts(t *testing.T) {
	env := kubetest.Start(t)
	for _, name := range []string{"dev", "production"} {
		text, err := os.ReadFile("../overlays/" + name + "/kubevirt.yaml")
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(text, &o.Object); err != nil {
			t.Fatal(err)
		}
		o.SetNamespace("default")
		if err := env.Client.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// applied returns the lines of a page's part, up to the next heading, that give something to an API server.
func applied(t *testing.T, page, heading string) []string {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(raw), "\n"+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	return slices.DeleteFunc(strings.Split(part, "\n"), func(line string) bool {
		return !strings.HasPrefix(line, "kubectl apply ") || strings.Contains(line, "--dry-run")
	})
}

// What docs/install.md says of an overlay is taken line by line by a cluster that has nothing of ours, and a second time
// without a change.
func TestInstallIsAppliedFromNothing(t *testing.T) {
	for heading, want := range map[string]int{"## One overlay and one object": 2, "## For production": 3} {
		t.Run(heading, func(t *testing.T) {
			env, kubeconfig := kubetest.Empty(t)
			lines := applied(t, "../docs/install.md", heading)
			if len(lines) != want {
				t.Fatalf("lines that apply: %q, want %d", lines, want)
			}
			for _, line := range append(lines, lines...) {
				cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
				cmd.Dir = ".."
				cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Dir(env.Kubectl)+":"+os.Getenv("PATH"))
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", line, err, out)
				}
			}
			installed(t, env)
		})
	}
}

// installed checks the operator's Deployments: of one generation, protected by a budget where there are two of them.
func installed(t *testing.T, env *kubetest.Env) {
	t.Helper()
	for _, name := range []string{"virt-operator", "virt-bundles"} {
		key := client.ObjectKey{Namespace: "kubevirt", Name: name}
		d := &appsv1.Deployment{}
		if err := env.Client.Get(t.Context(), key, d); err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		requests := pod.Containers[0].Resources.Requests
		if d.Generation != 1 || pod.PriorityClassName == "" || requests.Cpu().IsZero() || requests.Memory().IsZero() {
			t.Errorf("%s: generation %d, priority %q, requests %v", name, d.Generation, pod.PriorityClassName, requests)
		}
		if *d.Spec.Replicas == 1 {
			continue
		}
		if err := env.Client.Get(t.Context(), key, &policyv1.PodDisruptionBudget{}); err != nil {
			t.Error(err)
		}
	}
	ns := &corev1.Namespace{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: "kubevirt"}, ns); err != nil || ns.Labels["pod-security.kubernetes.io/enforce"] != "privileged" {
		t.Errorf("the namespace has labels %v: %v", ns.Labels, err)
	}
}

// An API server that has no CRD yet takes no object of its kind: what is applied in one go never has both.
func TestNoObjectStandsBesideItsCRD(t *testing.T) {
	files, err := filepath.Glob("../overlays/*/kustomization.yaml")
	if err != nil || len(files) < 2 {
		t.Fatalf("overlays: %v: %v", files, err)
	}
	for _, file := range files {
		alone(t, filepath.Dir(file), built(t, strings.TrimPrefix(filepath.Dir(file), "../")))
	}
	for _, tool := range []string{"flux", "argo"} {
		l := newLayout(t, tool)
		parts, err := filepath.Glob(filepath.Join(l.dir, "infrastructure", "*"))
		if err != nil || len(parts) < 4 {
			t.Fatalf("%s: parts %v: %v", tool, parts, err)
		}
		for _, dir := range parts {
			alone(t, tool+" "+filepath.Base(dir), l.built("infrastructure/"+filepath.Base(dir)))
		}
	}
}

// alone checks that none of the objects is of a kind that another of them defines.
func alone(t *testing.T, where string, objects []build.Object) {
	t.Helper()
	defined := map[string]bool{}
	for _, crd := range kinds(objects, "CustomResourceDefinition") {
		defined[text(crd.Object, "spec", "group")+"/"+text(crd.Object, "spec", "names", "kind")] = true
	}
	for _, o := range objects {
		if defined[o.GroupVersionKind().Group+"/"+o.GetKind()] {
			t.Errorf("%s: %s stands beside the CRD of its kind", where, o)
		}
	}
}
