package lab

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// NextVersion is the release that the later version of the images says it is; source: ci/images.
const NextVersion = "v0.3.0"

const nextSuffix = "-next"

// Next builds the images that stand in for a later release, where they are not up to date, and brings them to the nodes.
func (l *Lab) Next(ctx context.Context) error {
	names := []string{"virtstack" + nextSuffix, "virt-launcher" + nextSuffix}
	if _, err := l.Run(ctx, "go", append([]string{"run", "./ci/images", "build"}, names...)...); err != nil {
		return err
	}
	args := []string{"import"}
	for _, n := range names {
		args = append(args, filepath.Join(l.State(), "images", n+".tar"))
	}
	_, err := l.Run(ctx, "cluster", args...)
	return err
}

// release is the kustomization of an install in a repository that has a copy of bundles/ and overlays/dev.
const release = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [../overlays/dev]
configurations: [images.yaml]
images:
%s%s`

// stamp makes the CRDs those of the later release.
const stamp = `patches:
- target: {kind: CustomResourceDefinition}
  patch: '[{"op": "replace", "path": "/metadata/labels/virtstack.io~1release", "value": "%s"}]'
`

// Release returns what a repository holds, by path, to install what was built from its directory "release": this version,
// or the later one.
func (l *Lab) Release(later bool) (map[string][]byte, error) {
	suffix, patches := "", ""
	if later {
		suffix, patches = nextSuffix, fmt.Sprintf(stamp, NextVersion)
	}
	entries, err := l.images(suffix)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"release/kustomization.yaml": fmt.Appendf(nil, release, entries, patches)}
	for _, dir := range []string{"bundles/crds", "bundles/operator", "overlays/dev"} {
		if err := add(files, os.DirFS(l.Root), dir); err != nil {
			return nil, err
		}
	}
	files["release/images.yaml"] = files["overlays/dev/images.yaml"]
	return files, nil
}

func add(files map[string][]byte, from fs.FS, dir string) error {
	all, err := fs.Glob(from, path.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range all {
		if files[file], err = fs.ReadFile(from, file); err != nil {
			return err
		}
	}
	return nil
}
