package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var small = Image{
	Name:       "localhost/app:7",
	Entrypoint: []string{"/bin/app"},
	Entries: []Entry{
		{Path: "tmp", Mode: os.ModeDir | os.ModeSticky | 0o777},
		{Path: "bin", Mode: os.ModeDir | 0o755},
		{Path: "bin/app", Mode: 0o755, Text: "program"},
		{Path: "bin/link", Link: "app"},
	},
}

// files reads a tar archive.
func files(t *testing.T, raw []byte) (content map[string][]byte, headers []*tar.Header) {
	t.Helper()
	content = map[string][]byte{}
	r := tar.NewReader(bytes.NewReader(raw))
	for {
		h, err := r.Next()
		if err == io.EOF {
			return content, headers
		}
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, h)
		if content[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

func TestArchiveNamesTheImageAndHoldsItsBlobs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "app.tar")
	if err := small.Write(file); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := files(t, raw)
	var index struct {
		Manifests []struct {
			Digest      string
			Annotations map[string]string
		}
	}
	if err := json.Unmarshal(got["index.json"], &index); err != nil {
		t.Fatal(err)
	}
	if name := index.Manifests[0].Annotations["io.containerd.image.name"]; name != small.Name {
		t.Errorf("name %q, want %q", name, small.Name)
	}
	for name, data := range got {
		dir, want := filepath.Split(name)
		if sum := sha256.Sum256(data); dir == blobDir && hex.EncodeToString(sum[:]) != want {
			t.Errorf("blob %s has digest %x", name, sum)
		}
	}
	if _, ok := got[blobDir+index.Manifests[0].Digest[len("sha256:"):]]; !ok {
		t.Errorf("manifest %s is missing", index.Manifests[0].Digest)
	}
}

func TestLayerIsSortedAndTimeless(t *testing.T) {
	var raw bytes.Buffer
	if err := small.layer(&raw); err != nil {
		t.Fatal(err)
	}
	content, headers := files(t, raw.Bytes())
	var names []string
	for _, h := range headers {
		names = append(names, h.Name)
		if h.ModTime.After(time.Unix(0, 0)) || h.Uid != 0 {
			t.Errorf("%s: time %v, owner %d", h.Name, h.ModTime, h.Uid)
		}
	}
	want := []string{"bin/", "bin/app", "bin/link", "tmp/"}
	for i, n := range want {
		if i >= len(names) || names[i] != n {
			t.Fatalf("got %v, want %v", names, want)
		}
	}
	if string(content["bin/app"]) != "program" || headers[2].Linkname != "app" || headers[3].Mode != 0o1777 {
		t.Errorf("got %q, link %q, mode %o", content["bin/app"], headers[2].Linkname, headers[3].Mode)
	}
}

func TestAnUnchangedImageKeepsItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "images", "app.tar")
	if err := small.Write(file); err != nil {
		t.Fatal(err)
	}
	old := time.Unix(1000, 0)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if err := small.Write(file); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(file)
	if err != nil || !fi.ModTime().Equal(old) {
		t.Fatalf("written again: %v %v", fi.ModTime(), err)
	}
	changed := small
	changed.Entrypoint = []string{"/bin/link"}
	if err := changed.Write(file); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(file); err != nil || fi.ModTime().Equal(old) {
		t.Errorf("a changed image was not written: %v", err)
	}
}
