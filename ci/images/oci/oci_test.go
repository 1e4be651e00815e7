package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"virtstack.io/virtstack/ci/images/rootfs"
)

func spec(content string) Spec {
	base, top := rootfs.New(), rootfs.New()
	base.File("etc/passwd", []byte("root"), 0o644)
	top.File("usr/bin/program", bytes.Repeat([]byte(content), 100_000), 0o755)
	return Spec{User: "107:107", Layers: []Layer{{"base", base}, {"program", top}}}
}

func build(t *testing.T, s Spec) (Image, string) {
	t.Helper()
	image, err := Build(s)
	if err != nil {
		t.Fatal(err)
	}
	tag, err := image.Tag()
	if err != nil {
		t.Fatal(err)
	}
	return image, tag
}

func TestTagFollowsTheContent(t *testing.T) {
	_, a := build(t, spec("one"))
	_, again := build(t, spec("one"))
	_, b := build(t, spec("two"))
	if a != again || a == b || len(a) != 12 {
		t.Errorf("got tags %q and %q for the same content, %q for another", a, again, b)
	}
}

func TestImageIsValid(t *testing.T) {
	image, _ := build(t, spec("one"))
	if err := validate.Image(image.image, validate.Fast); err != nil { // the slow way reads gzip only
		t.Error(err)
	}
	layers, err := image.image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := v1.SHA256(content)
		if want, _ := l.DiffID(); err != nil || got != want {
			t.Errorf("a layer unpacks to %v, %v; its image says %v", got, err, want)
		}
	}
	if image.Bytes < 300_000 || image.CompressedBytes >= image.Bytes {
		t.Errorf("got %d bytes, %d compressed", image.Bytes, image.CompressedBytes)
	}
}

func TestArchiveIsALayoutUnderAllNames(t *testing.T) {
	image, tag := build(t, spec("one"))
	file := filepath.Join(t.TempDir(), "program.tar")
	if err := image.WriteArchive(file, "localhost/program", tag, "dev"); err != nil {
		t.Fatal(err)
	}
	dir := unpack(t, file)
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index, validate.Fast); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var manifest v1.IndexManifest
	if err := json.Unmarshal(data, &manifest); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range manifest.Manifests {
		names = append(names, m.Annotations["io.containerd.image.name"])
	}
	if len(names) != 2 || names[0] != "localhost/program:"+tag || names[1] != "localhost/program:dev" {
		t.Errorf("got names %q", names)
	}
}

func TestArchiveOfTheSameImageIsTheSame(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		image, tag := build(t, spec("one"))
		file := filepath.Join(t.TempDir(), "program.tar")
		if err := image.WriteArchive(file, "localhost/program", tag); err != nil {
			t.Fatal(err)
		}
		var err error
		if archives[i], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same image differ")
	}
}

func unpack(t *testing.T, file string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if sum, _, err := v1.SHA256(bytes.NewReader(data)); err != nil || (filepath.Base(filepath.Dir(h.Name)) == "sha256" && filepath.Base(h.Name) != sum.Hex) {
			t.Errorf("%s has the digest %s, %v", h.Name, sum, err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, h.Name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, h.Name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
