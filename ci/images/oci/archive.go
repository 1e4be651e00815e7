package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations by which an archive names its images: containerd reads the first, others the second.
const (
	annotationImageName = "io.containerd.image.name"
	annotationRefName   = "org.opencontainers.image.ref.name"
)

// WriteArchive writes the image as a tar file in OCI layout, under each of the names "repository:tag". A file is there
// with all its content or not at all.
func (i Image) WriteArchive(file, repository string, tags ...string) error {
	var names []v1.Descriptor
	for _, tag := range tags {
		d, err := partial.Descriptor(i.image)
		if err != nil {
			return fmt.Errorf("describing image %s: %w", repository, err)
		}
		d.Platform = &v1.Platform{OS: "linux", Architecture: "amd64"}
		d.Annotations = map[string]string{annotationImageName: repository + ":" + tag, annotationRefName: tag}
		names = append(names, *d)
	}
	f, err := os.Create(file + ".part")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := i.write(f, names); err != nil {
		return fmt.Errorf("writing the archive of %s: %w", repository, err)
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(file+".part", file)
}

func (i Image) write(w io.Writer, names []v1.Descriptor) error {
	index, err := json.Marshal(v1.IndexManifest{SchemaVersion: 2, MediaType: types.OCIImageIndex, Manifests: names})
	if err != nil {
		return err
	}
	blobs, err := i.blobs()
	if err != nil {
		return err
	}
	out := tar.NewWriter(w)
	files := append([]blob{{"oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)}, {"index.json", index}}, blobs...)
	for _, b := range files {
		h := &tar.Header{Name: b.name, Mode: 0o644, Size: int64(len(b.data)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(b.data); err != nil {
			return err
		}
	}
	return out.Close()
}

type blob struct {
	name string
	data []byte
}

// blobs returns manifest, configuration and layers. Equal layers are one blob.
func (i Image) blobs() ([]blob, error) {
	manifest, err := i.image.RawManifest()
	if err != nil {
		return nil, err
	}
	config, err := i.image.RawConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := i.image.Layers()
	if err != nil {
		return nil, err
	}
	contents := [][]byte{manifest, config}
	for _, l := range layers {
		content, err := l.Compressed()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(content)
		if err != nil {
			return nil, err
		}
		contents = append(contents, data)
	}
	var all []blob
	for _, data := range contents {
		hash, _, err := v1.SHA256(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		b := blob{"blobs/sha256/" + hash.Hex, data}
		if !slices.ContainsFunc(all, func(o blob) bool { return o.name == b.name }) {
			all = append(all, b)
		}
	}
	return all, nil
}
