// Package image writes small OCI image archives, the kind that containerd imports, without a registry or a daemon. The
// same files always give the same bytes.
package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Entry is one file of an image, owned by root.
type Entry struct {
	Path string      // in the image, without a leading slash
	Mode os.FileMode // with os.ModeDir for a directory
	Link string      // target, for a symbolic link
	From string      // file of this machine with the content
	Text string      // content, where From is empty
}

// Image is one layer of files and how they are run.
type Image struct {
	Name       string // in full: localhost/app:1
	Entrypoint []string
	Entries    []Entry
}

// Write makes the archive, or leaves it untouched when it already says the same.
func (i Image) Write(file string) error {
	parts, err := i.parts()
	if err != nil {
		return fmt.Errorf("making image %s: %w", i.Name, err)
	}
	if index(file) == string(parts[1].data) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := i.write(file+".new", parts); err != nil {
		return fmt.Errorf("writing image %s: %w", i.Name, err)
	}
	return os.Rename(file+".new", file)
}

// index returns the index of an archive that Write made, which names everything in it by digest; else nothing.
func index(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	r := tar.NewReader(f)
	for {
		h, err := r.Next()
		if err != nil {
			return ""
		}
		if h.Name != "index.json" {
			continue
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			return ""
		}
		return string(raw)
	}
}

type object = map[string]any

// part is one file of the archive. The layer has no data here: it is written as it is read.
type part struct {
	name string
	size int64
	data []byte
}

const blobDir = "blobs/sha256/"

// blob is data under its digest, and what refers to it.
func blob(mediaType string, v object) (part, object, error) {
	raw, err := json.Marshal(v)
	sum := sha256.Sum256(raw)
	return part{blobDir + hex.EncodeToString(sum[:]), int64(len(raw)), raw}, refer(mediaType, sum[:], int64(len(raw))), err
}

func refer(mediaType string, sum []byte, size int64) object {
	return object{"mediaType": mediaType, "digest": "sha256:" + hex.EncodeToString(sum), "size": size}
}

// parts returns the archive's files: layout, index, layer, configuration, manifest. The layer is left uncompressed: it
// never travels farther than to this machine's containerd.
func (i Image) parts() ([]part, error) {
	sum, size := sha256.New(), &counter{}
	if err := i.layer(io.MultiWriter(sum, size)); err != nil {
		return nil, err
	}
	digest := sum.Sum(nil)
	layer := refer("application/vnd.oci.image.layer.v1.tar", digest, size.n)
	config, configRef, err := blob("application/vnd.oci.image.config.v1+json", object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{
			"Entrypoint": i.Entrypoint,
			"Env":        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs": object{"type": "layers", "diff_ids": []any{layer["digest"]}},
	})
	if err != nil {
		return nil, err
	}
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	manifest, ref, err := blob(manifestType, object{
		"schemaVersion": 2, "mediaType": manifestType, "config": configRef, "layers": []object{layer},
	})
	if err != nil {
		return nil, err
	}
	ref["annotations"] = object{ // containerd takes the image's name from the first
		"io.containerd.image.name":          i.Name,
		"org.opencontainers.image.ref.name": i.Name[strings.LastIndexByte(i.Name, ':')+1:],
	}
	ref["platform"] = object{"architecture": runtime.GOARCH, "os": "linux"}
	idx, err := json.Marshal(object{"schemaVersion": 2, "manifests": []object{ref}})
	layout := []byte(`{"imageLayoutVersion":"1.0.0"}`)
	return []part{
		{"oci-layout", int64(len(layout)), layout}, {"index.json", int64(len(idx)), idx},
		{blobDir + hex.EncodeToString(digest), size.n, nil}, config, manifest,
	}, err
}

// counter counts the bytes written to it.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func (i Image) write(file string, parts []part) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := tar.NewWriter(f)
	for _, p := range parts {
		if err := w.WriteHeader(&tar.Header{Name: p.name, Mode: 0o644, Size: p.size}); err != nil {
			return err
		}
		if p.data != nil {
			_, err = w.Write(p.data)
		} else {
			err = i.layer(w)
		}
		if err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return f.Close()
}

// layer writes the image's files as a tar archive, sorted, without times.
func (i Image) layer(to io.Writer) error {
	entries := slices.SortedFunc(slices.Values(i.Entries), func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	w := tar.NewWriter(to)
	for _, e := range entries {
		if err := e.write(w); err != nil {
			return fmt.Errorf("adding %s: %w", e.Path, err)
		}
	}
	return w.Close()
}

func (e Entry) write(w *tar.Writer) error {
	h := &tar.Header{Name: e.Path, Mode: int64(e.Mode.Perm()), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
	if e.Mode&os.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	var content io.Reader = strings.NewReader(e.Text)
	switch {
	case e.Mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, e.Path+"/"
	case e.Link != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.Link, 0o777
	case e.From != "":
		f, err := os.Open(e.From)
		if err != nil {
			return err
		}
		defer f.Close()
		fi, err := f.Stat()
		if err != nil {
			return err
		}
		content, h.Size = f, fi.Size()
	default:
		h.Size = int64(len(e.Text))
	}
	if err := w.WriteHeader(h); err != nil || h.Size == 0 {
		return err
	}
	_, err := io.Copy(w, content)
	return err
}
