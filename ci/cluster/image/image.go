// Package image writes small OCI image archives, the kind that containerd imports, without a registry or a daemon. The
// same files always give the same bytes.
package image

import (
	"archive/tar"
	"bytes"
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
	archive, err := i.archive()
	if err != nil {
		return fmt.Errorf("making image %s: %w", i.Name, err)
	}
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, archive) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", archive, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

type object = map[string]any

// blobs collects the archive's blobs in order.
type blobs struct {
	names []string
	data  [][]byte
}

func (b *blobs) add(mediaType string, data []byte) object {
	sum := digest(data)
	b.names, b.data = append(b.names, "blobs/sha256/"+sum), append(b.data, data)
	return object{"mediaType": mediaType, "digest": "sha256:" + sum, "size": len(data)}
}

func (b *blobs) addJSON(mediaType string, v object) (object, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return b.add(mediaType, raw), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// archive leaves the layer uncompressed: it never travels farther than to this machine's containerd.
func (i Image) archive() ([]byte, error) {
	layer, err := i.layer()
	if err != nil {
		return nil, err
	}
	var b blobs
	l := b.add("application/vnd.oci.image.layer.v1.tar", layer)
	config, err := b.addJSON("application/vnd.oci.image.config.v1+json", object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{
			"Entrypoint": i.Entrypoint,
			"Env":        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs": object{"type": "layers", "diff_ids": []any{l["digest"]}},
	})
	if err != nil {
		return nil, err
	}
	const manifestType = "application/vnd.oci.image.manifest.v1+json"
	m, err := b.addJSON(manifestType, object{"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []object{l}})
	if err != nil {
		return nil, err
	}
	m["annotations"] = object{ // containerd takes the image's name from the first
		"io.containerd.image.name":          i.Name,
		"org.opencontainers.image.ref.name": i.Name[strings.LastIndexByte(i.Name, ':')+1:],
	}
	m["platform"] = object{"architecture": runtime.GOARCH, "os": "linux"}
	index, err := json.Marshal(object{"schemaVersion": 2, "manifests": []object{m}})
	if err != nil {
		return nil, err
	}
	b.names = append([]string{"oci-layout", "index.json"}, b.names...)
	b.data = append([][]byte{[]byte(`{"imageLayoutVersion":"1.0.0"}`), index}, b.data...)
	return b.tar()
}

func (b *blobs) tar() ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i, name := range b.names {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(b.data[i]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(b.data[i]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return buf.Bytes(), err
}

func (i Image) layer() ([]byte, error) {
	entries := slices.SortedFunc(slices.Values(i.Entries), func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if err := e.write(w); err != nil {
			return nil, fmt.Errorf("adding %s: %w", e.Path, err)
		}
	}
	err := w.Close()
	return buf.Bytes(), err
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
