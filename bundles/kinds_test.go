package bundles_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// What clients of KubeVirt know its kinds by: groups, versions, short names, categories, subresources and columns are
// those of its contract, and a difference is one that they see.
func TestKindsAreAsClientsKnowThem(t *testing.T) {
	files, err := filepath.Glob("crds/*.yaml")
	if err != nil || len(files) < 19 {
		t.Fatalf("found %d files: %v", len(files), err)
	}
	var lines []string
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &extensions.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		lines = append(lines, known(crd)...)
	}
	slices.Sort(lines)
	want, err := os.ReadFile("testdata/kinds.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), strings.Join(lines, "\n")+"\n"); diff != "" {
		t.Errorf("kinds differ from testdata/kinds.golden (-want +got):\n%s", diff)
	}
}

// known is a line for each version of a kind.
func known(crd *extensions.CustomResourceDefinition) []string {
	var out []string
	n := crd.Spec.Names
	for _, v := range crd.Spec.Versions {
		line := fmt.Sprintf("%s/%s %s %s %s short=%s categories=%s", crd.Spec.Group, v.Name, n.Plural, n.Kind, crd.Spec.Scope,
			strings.Join(n.ShortNames, ","), strings.Join(n.Categories, ","))
		for _, is := range []struct {
			word string
			so   bool
		}{{" stored", v.Storage}, {" deprecated", v.Deprecated}, {" unserved", !v.Served}} {
			if is.so {
				line += is.word
			}
		}
		if s := v.Subresources; s != nil && s.Status != nil {
			line += " status"
		}
		if s := v.Subresources; s != nil && s.Scale != nil {
			line += fmt.Sprintf(" scale=%s,%s,%s", s.Scale.SpecReplicasPath, s.Scale.StatusReplicasPath, *s.Scale.LabelSelectorPath)
		}
		for _, c := range v.AdditionalPrinterColumns {
			line += fmt.Sprintf("\n  %s=%s %s priority=%d", c.Name, c.JSONPath, c.Type, c.Priority)
		}
		out = append(out, line)
	}
	return out
}
