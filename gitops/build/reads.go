package build

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// reads returns the files that a kustomization uses besides its resources: those parsed as YAML, and those whose bytes
// go into a ConfigMap or Secret.
func reads(k types.Kustomization) (parsed, opaque []string) {
	parsed = slices.Concat(k.Crds, k.Configurations)
	if p := k.OpenAPI["path"]; p != "" {
		parsed = append(parsed, p)
	}
	//lint:ignore SA1019 what is deprecated is read all the same, by kustomize as well
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) {
		if p.Path != "" {
			parsed = append(parsed, p.Path)
		}
	}
	//lint:ignore SA1019 what is deprecated is read all the same, by kustomize as well
	for _, p := range k.PatchesStrategicMerge {
		if !strings.Contains(string(p), "\n") && !strings.Contains(string(p), ": ") {
			parsed = append(parsed, string(p))
		}
	}
	for _, r := range k.Replacements {
		if r.Path != "" {
			parsed = append(parsed, r.Path)
		}
	}
	for _, m := range k.ConfigMapGenerator {
		opaque = append(opaque, pairs(m.KvPairSources)...)
	}
	for _, s := range k.SecretGenerator {
		opaque = append(opaque, pairs(s.KvPairSources)...)
	}
	return parsed, opaque
}

func pairs(s types.KvPairSources) []string {
	files := slices.Clone(s.EnvSources)
	if s.EnvSource != "" {
		files = append(files, s.EnvSource)
	}
	for _, f := range s.FileSources {
		if _, file, ok := strings.Cut(f, "="); ok {
			f = file
		}
		files = append(files, f)
	}
	return files
}

// manifest checks a file of objects.
func (w *walk) manifest(file string) error {
	docs, err := w.yamlFile(file)
	if err != nil {
		return err
	}
	for i, d := range docs {
		if err := object(d); err != nil {
			return fmt.Errorf("%s: document %d, line %d: %w", file, i+1, d.Line, err)
		}
		w.note(file, d)
	}
	return nil
}

func (w *walk) yamlFile(file string) ([]*yamlv3.Node, error) {
	data, err := w.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return w.parse(file, data)
}

func (w *walk) checkYAML(file string, data []byte) error {
	_, err := w.parse(file, data)
	return err
}

// parse returns the documents of a file that are not empty.
func (w *walk) parse(file string, data []byte) ([]*yamlv3.Node, error) {
	dec := yamlv3.NewDecoder(bytes.NewReader(data))
	left := w.limits.Nodes
	var docs []*yamlv3.Node
	for {
		var doc yamlv3.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, located(data, err))
		}
		if err := w.measure(&doc, 0, &left); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if root := content(&doc); root != nil {
			if encrypted(root) {
				return nil, fmt.Errorf("%s: %w", file, errEncrypted)
			}
			docs = append(docs, root)
		}
	}
}

func content(doc *yamlv3.Node) *yamlv3.Node {
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil
	}
	return doc.Content[0]
}

// measure walks a document with its aliases expanded, which also ends one that contains itself.
func (w *walk) measure(n *yamlv3.Node, depth int, left *int) error {
	if *left--; *left < 0 {
		return fmt.Errorf("more than %d values, aliases expanded", w.limits.Nodes)
	}
	if depth > w.limits.Depth {
		return fmt.Errorf("line %d: nested more than %d deep", n.Line, w.limits.Depth)
	}
	if n.Alias != nil {
		return w.measure(n.Alias, depth+1, left)
	}
	for _, c := range n.Content {
		if err := w.measure(c, depth+1, left); err != nil {
			return err
		}
	}
	return nil
}

// object checks what kustomize needs to tell objects apart.
func object(n *yamlv3.Node) error {
	if n.Kind != yamlv3.MappingNode {
		return errors.New("want an object with apiVersion, kind and metadata")
	}
	if value(n, "apiVersion") == nil {
		return errors.New("apiVersion is missing")
	}
	kind := value(n, "kind")
	if kind == nil {
		return errors.New("kind is missing")
	}
	if strings.HasSuffix(kind.Value, "List") && value(n, "items") != nil {
		return nil
	}
	if meta := value(n, "metadata"); meta == nil || value(meta, "name") == nil {
		return fmt.Errorf("%s: metadata.name is missing", kind.Value)
	}
	return nil
}

func value(n *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
