// Package bundles holds the manifests that are compiled into programs: the components into the operator, the
// definitions into virtctl.
package bundles

import (
	"embed"
	"io/fs"
)

//go:embed components
var components embed.FS

//go:embed crds/*.yaml
var definitions embed.FS

// Components returns the component bundle, rooted at its kustomization.yaml.
func Components() fs.FS { return beneath(components, "components") }

// Definitions returns the custom resource definitions that an install applies, one in each file.
func Definitions() fs.FS { return beneath(definitions, "crds") }

func beneath(files embed.FS, dir string) fs.FS {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		panic(err) // the name is a constant that the compiler has checked
	}
	return sub
}
