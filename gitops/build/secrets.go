package build

import (
	"path"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// note remembers where an object is, and what a Secret holds.
func (w *walk) note(file string, n *yamlv3.Node) {
	meta, kind := value(n, "metadata"), text(value(n, "kind"))
	group, version := resid.ParseGroupVersion(text(value(n, "apiVersion")))
	if !isAlone(group) || strings.HasSuffix(kind, "List") {
		w.shared[file] = true
	}
	if meta == nil {
		return
	}
	id := resid.NewResIdWithNamespace(resid.NewGvk(group, version, kind), text(value(meta, "name")), text(value(meta, "namespace"))).String()
	w.places[id] = append(w.places[id], place{file, n.Line})
	if kind != "Secret" {
		return
	}
	for _, field := range []string{"data", "stringData"} {
		d := value(n, field)
		for i := 1; d != nil && i < len(d.Content); i += 2 {
			w.secrets = append(w.secrets, d.Content[i].Value)
		}
	}
}

func text(n *yamlv3.Node) string {
	if n == nil {
		return ""
	}
	return n.Value
}

// noteSecrets remembers what the kustomization in dir makes Secrets of. What can't be read fails later, where
// it is said.
func (w *walk) noteSecrets(dir string, k types.Kustomization) {
	for _, s := range k.SecretGenerator {
		w.secrets = append(w.secrets, s.LiteralSources...)
		for _, f := range pairs(s.KvPairSources) {
			if data, err := w.ReadFile(path.Join(dir, f)); err == nil {
				w.secrets = append(w.secrets, string(data))
			}
		}
	}
}
