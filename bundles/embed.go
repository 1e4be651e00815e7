// Package bundles holds the manifests that are compiled into the operator.
package bundles

import (
	"embed"
	"io/fs"
)

//go:embed components
var files embed.FS

// Components returns the component bundle, rooted at its kustomization.yaml.
func Components() fs.FS {
	sub, err := fs.Sub(files, "components")
	if err != nil {
		panic(err) // the name is a constant that the compiler has checked
	}
	return sub
}
