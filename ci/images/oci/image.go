package oci

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"virtstack.io/virtstack/ci/images/rootfs"
)

// Layer is one layer to be: a name for the image's history and its files.
type Layer struct {
	Name string
	Tree *rootfs.Tree
}

// Spec describes an image. Its order of layers is the one in which they are laid over each other.
type Spec struct {
	User   string // "uid:gid"
	Labels map[string]string
	Layers []Layer
}

// Image is a built image.
type Image struct {
	image v1.Image
	// Bytes and CompressedBytes are the sums over all layers.
	Bytes, CompressedBytes int64
}

// Build packs an image for linux/amd64. The same spec gives the same digest.
func Build(spec Spec) (Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built := Image{}
	var addenda []mutate.Addendum
	for _, l := range spec.Layers {
		packed, err := newLayer(l.Tree)
		if err != nil {
			return Image{}, fmt.Errorf("packing layer %q: %w", l.Name, err)
		}
		built.Bytes += packed.size
		built.CompressedBytes += int64(len(packed.compressed))
		addenda = append(addenda, mutate.Addendum{Layer: packed, History: v1.History{CreatedBy: l.Name}, MediaType: types.OCILayerZStd})
	}
	image, err := mutate.Append(base, addenda...)
	if err != nil {
		return Image{}, fmt.Errorf("putting layers together: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return Image{}, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "amd64"
	config.Config = v1.Config{User: spec.User, Labels: spec.Labels, Env: []string{"PATH=/usr/bin:/usr/sbin"}, WorkingDir: "/"}
	if built.image, err = mutate.ConfigFile(image, config); err != nil {
		return Image{}, fmt.Errorf("writing the image's configuration: %w", err)
	}
	return built, nil
}

// Tag is the image's name by content: the first twelve digits of its manifest's digest.
func (i Image) Tag() (string, error) {
	digest, err := i.image.Digest()
	if err != nil {
		return "", fmt.Errorf("computing the image's digest: %w", err)
	}
	return digest.Hex[:12], nil
}
