package bundles_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

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
