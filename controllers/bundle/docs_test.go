package bundle

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/api/v1alpha1"
)

// Each Bundle of the page is one: no field of it is unknown, and its expressions are CEL.
func TestBundlesInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/gitops/bundle-build.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, part := range strings.Split(string(page), "```") {
		text, ok := strings.CutPrefix(part, "yaml\n")
		if !ok || i%2 == 0 {
			continue
		}
		found++
		b := &v1alpha1.Bundle{}
		if err := yaml.UnmarshalStrict([]byte(text), b); err != nil || b.Kind != v1alpha1.BundleKind {
			t.Errorf("%s: %v", text, err)
		}
		if _, failure := judges(b); failure != nil {
			t.Errorf("%s: %s", text, failure.Message)
		}
	}
	if found < 3 {
		t.Errorf("%d Bundles found", found)
	}
}
