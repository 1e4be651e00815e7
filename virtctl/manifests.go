package virtctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// maxManifest is the most bytes that are read of one file.
const maxManifest = 32 << 20

// sources are where manifests come from.
type sources struct {
	files, kustomizations []string
	bases                 bases
}

// manifest is one object and where it is, or why it can't be read.
type manifest struct {
	file   string
	line   int // of the document in the file, from 1; 0 if it was built
	object *unstructured.Unstructured
	err    error
	tree   *yamlv3.Node
}

func (m manifest) String() string {
	name := m.object.GetName()
	if ns := m.object.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return m.object.GetKind() + " " + name
}

// read returns the manifests of all sources in their order. The error is about a source that can't be read at all.
func (s sources) read(ctx context.Context, stdin io.Reader) ([]manifest, error) {
	if len(s.files)+len(s.kustomizations) == 0 {
		return nil, errors.New("no manifests: give files with -f, or kustomizations with -k")
	}
	var all []manifest
	for _, name := range s.files {
		found, err := readFile(name, stdin)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	for _, dir := range s.kustomizations {
		found, err := s.bases.readKustomization(ctx, dir)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func readFile(name string, stdin io.Reader) ([]manifest, error) {
	if name == "-" {
		return readDocuments("stdin", stdin)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	if !info.IsDir() {
		return openDocuments(name)
	}
	var all []manifest
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return err
		}
		found, err := openDocuments(path)
		all = append(all, found...)
		return err
	})
	return all, err
}

func openDocuments(name string) ([]manifest, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	return readDocuments(name, f)
}

// readDocuments reads the YAML documents of a file.
func readDocuments(name string, from io.Reader) ([]manifest, error) {
	content, err := io.ReadAll(io.LimitReader(from, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(content) > maxManifest {
		return nil, fmt.Errorf("reading %s: it must have at most %d bytes", name, maxManifest)
	}
	var all []manifest
	var doc [][]byte
	start := 1
	end := func(next int) {
		all = append(all, parse(name, start, bytes.Join(doc, []byte("\n")))...)
		doc, start = nil, next
	}
	for i, line := range bytes.Split(content, []byte("\n")) {
		if bytes.Equal(bytes.TrimRight(line, " \t\r"), []byte("---")) || bytes.HasPrefix(line, []byte("--- ")) {
			end(i + 1)
			line = bytes.TrimPrefix(line, []byte("---"))
		}
		doc = append(doc, line)
	}
	end(0)
	return all, nil
}

// parse reads one document that starts at a line of a file; an empty one has no manifest, a List has one for each of
// its items.
func parse(file string, line int, doc []byte) []manifest {
	m := manifest{file: file, line: line}
	text, err := yaml.YAMLToJSONStrict(doc)
	if err != nil {
		m.err = errors.New(moved(err.Error(), line-1))
		return []manifest{m}
	}
	if string(text) == "null" {
		return nil
	}
	m.object = &unstructured.Unstructured{}
	if err := m.object.UnmarshalJSON(text); err != nil {
		m.err = fmt.Errorf("no Kubernetes object: %w", err)
		return []manifest{m}
	}
	tree := &yamlv3.Node{}
	if yamlv3.Unmarshal(doc, tree) == nil && len(tree.Content) == 1 {
		m.tree = tree.Content[0]
		m.line = line - 1 + m.tree.Line
	}
	items, isList := m.object.Object["items"].([]any)
	if !isList || m.object.GetKind() != "List" {
		return []manifest{m}
	}
	var all []manifest
	for _, item := range items {
		if inner, ok := item.(map[string]any); ok {
			all = append(all, manifest{file: file, line: m.line, object: &unstructured.Unstructured{Object: inner}})
		}
	}
	return all
}

var lineNumber = regexp.MustCompile(`line (\d+)`)

// moved adds to the line numbers of a message.
func moved(message string, by int) string {
	message = strings.Join(strings.Fields(message), " ")
	return lineNumber.ReplaceAllStringFunc(message, func(s string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(s, "line ")) // digits
		return fmt.Sprintf("line %d", n+by)
	})
}

// readKustomization builds a directory. What it may reach is the repository that it is in, or the directory itself.
func (b bases) readKustomization(ctx context.Context, dir string) ([]manifest, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	top := repository(dir)
	root, err := os.OpenRoot(top)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	defer func() { _ = root.Close() }() // it was only read
	inside, err := filepath.Rel(top, dir)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	objects, err := b.objects(ctx, root.FS(), filepath.ToSlash(inside))
	if err != nil {
		return nil, err
	}
	var all []manifest
	for _, o := range objects {
		all = append(all, manifest{file: o.File, object: o.Unstructured})
	}
	return all, nil
}

// repository is the nearest directory above that holds .git; without one, the directory itself.
func repository(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

var pathPart = regexp.MustCompile(`\[[^\]]*\]|[^.\[]+`)

// lineOf is the line of a field, or of the nearest thing around it that the document has; 0 if it was built.
func (m manifest) lineOf(path string) int {
	node, base := m.tree, 0
	if node == nil {
		return m.line
	}
	base = m.line - node.Line
	line := node.Line
	for _, part := range pathPart.FindAllString(path, -1) {
		part = strings.Trim(part, "[]")
		key, value := child(node, part)
		if value == nil {
			break
		}
		node, line = value, key
	}
	return base + line
}

// child returns the entry of a mapping or sequence, and its line.
func child(node *yamlv3.Node, part string) (int, *yamlv3.Node) {
	if i, err := strconv.Atoi(part); err == nil && node.Kind == yamlv3.SequenceNode && i < len(node.Content) && i >= 0 {
		return node.Content[i].Line, node.Content[i]
	}
	if node.Kind != yamlv3.MappingNode {
		return 0, nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == part {
			return node.Content[i].Line, node.Content[i+1]
		}
	}
	return 0, nil
}
