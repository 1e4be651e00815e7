//go:build e2e

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"virtstack.io/virtstack/gitops/build"
)

// document is what users are shown as one thing: a file of examples, or one manifest of a page.
type document struct {
	name    string
	objects []*unstructured.Unstructured
}

// shipped returns every VM, instancetype and preference that examples, bundles and pages of the documentation have, with
// the objects beside them.
func shipped(t *testing.T) []document {
	t.Helper()
	var all []document
	for _, dir := range []string{"examples/kustomize", "bundles/instancetypes"} {
		built, err := build.Objects(t.Context(), os.DirFS(theLab.Root), dir, build.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		d := document{name: filepath.Base(dir)}
		for _, o := range built {
			d.objects = append(d.objects, o.Unstructured)
		}
		all = append(all, d)
	}
	for _, pattern := range []string{"examples/vms/*.yaml", "docs/*.md", "docs/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(theLab.Root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files: %v", pattern, len(files), err)
		}
		for _, file := range files {
			all = append(all, read(t, file)...)
		}
	}
	return all
}

// heredoc is a manifest that a page gives to kubectl.
var heredoc = regexp.MustCompile(`(?s)kubectl apply --server-side[^\n]* -f - <<'EOF'\n(.*?)\nEOF\n`)

func read(t *testing.T, file string) []document {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".md")
	if filepath.Ext(file) == ".yaml" {
		return []document{{name, objects(t, file, string(raw))}}
	}
	var found []document
	for i, m := range heredoc.FindAllStringSubmatch(string(raw), -1) {
		// What drives the applier itself is no example of what it applies.
		if !strings.Contains(m[1], "kind: VirtualMachine") {
			continue
		}
		found = append(found, document{fmt.Sprintf("%s-%d", name, i+1), objects(t, file, m[1])})
	}
	return found
}

func objects(t *testing.T, file, text string) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for part := range strings.SplitSeq(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &o.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if plain, found, _ := unstructured.NestedStringMap(o.Object, "stringData"); found {
			// The API server takes it over into data and forgets it: no applier could compare it.
			delete(o.Object, "stringData")
			data := map[string]any{}
			for k, v := range plain {
				data[k] = base64.StdEncoding.EncodeToString([]byte(v))
			}
			o.Object["data"] = data
		}
		if len(o.Object) > 0 {
			found = append(found, o)
		}
	}
	return found
}
