package build

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// walk visits every file that a build will read, before kustomize does: kustomize fetches whatever looks remote, and
// its errors don't name files well.
type walk struct {
	*tree
	seen        map[string]bool
	keepOrigins bool
	places      map[string][]place  // of objects, by kustomize's id
	secrets     []string            // what Secrets are made of: errors must not show it
	root        types.Kustomization // what is built, overlaid
	shared      map[string]bool     // files with objects that kustomize may change for others
	count       map[string]int      // of objects, by file
	variables   Variables
	file        string // of root
	bases       Bases
	mounts      mounted
}

// start prepares the directory that is built: a kustomization is made up if it has none, and asked to note where
// objects come from.
func (w *walk) start(dir string, over Overlay) error {
	file, err := w.kustomization(dir)
	if err != nil {
		return err
	}
	k := types.Kustomization{TypeMeta: types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}}
	if file == "" {
		if k.Resources, err = w.manifests(dir, dir, 0); err != nil {
			return err
		}
		file = path.Join(dir, konfig.DefaultKustomizationFileName())
	} else if k, err = w.read(file); err != nil {
		return err
	}
	if err := w.lay(over, dir, &k); err != nil {
		return err
	}
	w.keepOrigins = slices.Contains(k.BuildMetadata, types.OriginAnnotations)
	if !w.keepOrigins {
		k.BuildMetadata = append(k.BuildMetadata, types.OriginAnnotations)
	}
	data, err := yaml.Marshal(k)
	if err != nil {
		return err
	}
	w.file, w.root, w.over[file] = file, k, data
	return w.visit(dir, 0)
}

// kustomization returns the path of dir's kustomization file, "" if it has none.
func (w *walk) kustomization(dir string) (string, error) {
	var found []string
	for _, n := range konfig.RecognizedKustomizationFileNames() {
		if w.Exists(path.Join(dir, n)) {
			found = append(found, path.Join(dir, n))
		}
	}
	switch len(found) {
	case 0:
		return "", nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s and %s are both there, one must go", found[0], found[1])
}

// manifests lists the YAML files beneath dir, relative to root, and in their place directories with a kustomization
// of their own. Hidden ones are left out.
func (w *walk) manifests(root, dir string, depth int) ([]string, error) {
	names, err := w.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if depth > w.limits.Depth {
		return nil, fmt.Errorf("%s: directories are nested more than %d deep", dir, w.limits.Depth)
	}
	var found []string
	for _, n := range names {
		p := path.Join(dir, n)
		rel := strings.TrimPrefix(strings.TrimPrefix(p, root), "/")
		switch {
		case strings.HasPrefix(n, "."):
		case w.IsDir(p):
			below, err := w.directory(root, p, depth)
			if err != nil {
				return nil, err
			}
			found = append(found, below...)
		case path.Ext(n) == ".yaml" || path.Ext(n) == ".yml":
			found = append(found, rel)
		}
	}
	return found, nil
}

func (w *walk) directory(root, dir string, depth int) ([]string, error) {
	file, err := w.kustomization(dir)
	if err != nil {
		return nil, err
	}
	if file != "" {
		return []string{strings.TrimPrefix(strings.TrimPrefix(dir, root), "/")}, nil
	}
	return w.manifests(root, dir, depth+1)
}

func (w *walk) read(file string) (k types.Kustomization, err error) {
	data, err := w.ReadFile(file)
	if err != nil {
		return k, err
	}
	if err := w.checkYAML(file, data); err != nil {
		return k, err
	}
	if err := yaml.UnmarshalStrict(data, &k); err != nil {
		return k, fmt.Errorf("%s: %w", file, misspelt(data, err))
	}
	return k, nil
}

// visit checks the kustomization in dir and everything it leads to.
func (w *walk) visit(dir string, depth int) error {
	if w.seen[dir] {
		return nil
	}
	w.seen[dir] = true
	if depth > w.limits.Depth {
		return fmt.Errorf("%s: bases are nested more than %d deep", dir, w.limits.Depth)
	}
	file, err := w.kustomization(dir)
	if err != nil {
		return err
	}
	if file == "" {
		return fmt.Errorf("%s has no kustomization.yaml", shown(dir))
	}
	k, err := w.read(file)
	if err != nil {
		return err
	}
	if err := refused(k); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := w.localize(file, dir, &k); err != nil {
		return err
	}
	return w.follow(file, dir, k, depth)
}

func (w *walk) follow(file, dir string, k types.Kustomization, depth int) error {
	//lint:ignore SA1019 what is deprecated is read all the same, by kustomize as well
	for _, entry := range slices.Concat(k.Resources, k.Bases, k.Components) {
		p, err := w.local(dir, entry)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if w.IsDir(p) {
			err = w.visit(p, depth+1)
		} else {
			err = w.manifest(p)
		}
		if err != nil {
			return err
		}
	}
	w.noteSecrets(dir, k)
	for i, p := range k.Patches {
		if err := w.checkYAML(fmt.Sprintf("%s: patches[%d]", file, i), []byte(p.Patch)); err != nil {
			return err
		}
	}
	parsed, opaque := reads(k)
	for _, entry := range parsed {
		p, err := w.local(dir, entry)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if _, err := w.yamlFile(p); err != nil {
			return err
		}
	}
	for _, entry := range opaque {
		p, err := w.local(dir, entry)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if data, err := w.ReadFile(p); err == nil && bytes.Contains(data, sopsValue) {
			return fmt.Errorf("%s: %w", p, errEncrypted)
		}
	}
	return nil
}

var errMissing = errors.New("is not in the commit, or is a link that leads out of it")

// local resolves an entry of a kustomization in dir.
func (w *walk) local(dir, entry string) (string, error) {
	if isRemote(entry) {
		return "", remote(entry)
	}
	p := path.Join(dir, entry)

	if path.IsAbs(entry) || p == ".." || strings.HasPrefix(p, "../") || w.mounts.of(dir) != "" && w.mounts.of(p) == "" {
		return "", fmt.Errorf("%q leads out of the repository", entry)
	}
	if !w.Exists(p) {
		return "", fmt.Errorf("%q %w", entry, errMissing)
	}
	return p, nil
}

// isRemote reports whether kustomize would take the entry for a URL or a repository to clone. It asks kustomize's own
// parser, which tries this before it looks for a local directory of that name.
func isRemote(entry string) bool {
	return strings.Contains(entry, "://") || (&resource.Origin{}).Append(entry).Repo != ""
}

// refused names what can run or fetch something.
func refused(k types.Kustomization) error {
	switch {
	case k.HelmGlobals != nil, len(k.HelmCharts) > 0, len(k.HelmChartInflationGenerator) > 0:
		return errors.New("helm charts are not supported")
	case len(k.Generators) > 0:
		return errors.New("generators are not supported")
	case len(k.Transformers) > 0:
		return errors.New("transformers are not supported")
	case len(k.Validators) > 0:
		return errors.New("validators are not supported")
	}
	return nil
}
