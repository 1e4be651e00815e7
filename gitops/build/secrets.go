package build

import (
	"errors"
	"path"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// sopsValue is how each value that SOPS has encrypted begins, whatever the file's form.
var sopsValue = []byte("ENC[AES256_GCM,data:")

var errEncrypted = errors.New("it is encrypted with SOPS, which a Bundle doesn't decrypt: let Flux apply it, by a Kustomization with spec.decryption, and take it out of the Bundle's path")

// encrypted tells whether SOPS has encrypted a document.
func encrypted(n *yamlv3.Node) bool {
	by := value(n, "sops")
	return by != nil && by.Kind == yamlv3.MappingNode && (value(by, "mac") != nil || value(by, "lastmodified") != nil)
}

// note remembers where an object is, and what a Secret holds.
func (w *walk) note(file string, n *yamlv3.Node) {
	w.count[file]++
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
