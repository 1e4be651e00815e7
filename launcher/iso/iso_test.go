package iso_test

import (
	"bytes"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"virtstack.io/virtstack/launcher/iso"
)

func write(t *testing.T, files map[string]string) reader {
	t.Helper()
	var list []iso.File
	for name, content := range files {
		list = append(list, iso.File{Name: name, Content: []byte(content)})
	}
	var image bytes.Buffer
	if err := iso.Write(&image, "cfgdata", list); err != nil {
		t.Fatal(err)
	}
	return reader{image.Bytes()}
}

// Names come through as they are, long and mixed-case ones too: for Linux all, for Windows up to 103 characters.
func TestNamesAndContentComeThrough(t *testing.T) {
	files := map[string]string{
		"Mixed.Case.Name.conf": "a", "UPPER": "b", "upper": "c", "no-extension": "", "grüße 日本": "d",
		strings.Repeat("L", 90) + ".LongName": "e", "deep/er/Down/labels": "f", "a.b.c": strings.Repeat("x", 3*sector),
	}
	for i := range 60 { // more than a sector of records
		files["many/"+strings.Repeat("n", 60)+strconv.Itoa(i)] = "g"
	}
	r := write(t, files)
	for name, tree := range map[string]struct {
		descriptor int
		joliet     bool
	}{"Rock Ridge": {16, false}, "Joliet": {17, true}} {
		got, err := r.tree(tree.descriptor, tree.joliet)
		if err != nil || !maps.Equal(got, files) {
			t.Errorf("%s (-want +got):\n%s%v", name, cmp.Diff(files, got), err)
		}
	}
	if len(r.image)%(2*sector) != 0 {
		t.Errorf("%d bytes are no whole number of 4 KiB", len(r.image))
	}
}

// The longest names that Kubernetes has reach Linux whole, and Windows short, distinct and legal.
func TestLongestNames(t *testing.T) {
	one, two := strings.Repeat("k", 252)+"1", strings.Repeat("k", 252)+"2"
	r := write(t, map[string]string{one: "1", two: "2", "a:b*c": "3", "a_b_c": "4"})
	got, err := r.tree(16, false)
	if err != nil || got[one] != "1" || got[two] != "2" || got["a:b*c"] != "3" {
		t.Errorf("Rock Ridge: %v, %v", got, err)
	}
	got, err = r.tree(17, true)
	if err != nil || len(got) != 4 || got["a_b_c"] != "3" {
		t.Errorf("Joliet: %v, %v", got, err)
	}
	for name := range got {
		if utf8.RuneCountInString(name) > 103 || strings.ContainsAny(name, `*/:;?\`) {
			t.Errorf("Joliet: %q", name)
		}
	}
}

func TestTheSameFilesGiveTheSameImage(t *testing.T) {
	files := map[string]string{"a": "1", "b/c": "2", "d": "3"}
	if !bytes.Equal(write(t, files).image, write(t, files).image) {
		t.Error("two images of the same files differ")
	}
}

func TestRefusedNames(t *testing.T) {
	for _, name := range []string{"", "/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "a/.", "a\x00b", strings.Repeat("n", 256), "a/b/c/d/e/f/g/h"} {
		if err := iso.Write(&bytes.Buffer{}, "x", []iso.File{{Name: name}}); !errors.Is(err, iso.ErrName) {
			t.Errorf("%q: got %v", name, err)
		}
	}
	for _, twice := range [][2]string{{"a", "a"}, {"a", "a/b"}, {"a/b", "a"}} {
		if err := iso.Write(&bytes.Buffer{}, "x", []iso.File{{Name: twice[0]}, {Name: twice[1]}}); !errors.Is(err, iso.ErrName) {
			t.Errorf("%q: got %v", twice, err)
		}
	}
	for _, label := range []string{"", strings.Repeat("l", 33)} {
		if err := iso.Write(&bytes.Buffer{}, label, nil); err == nil {
			t.Errorf("label %q was taken", label)
		}
	}
	if err := iso.Write(&bytes.Buffer{}, "x", []iso.File{{Name: "large", Content: make([]byte, iso.MaxBytes+1)}}); err == nil {
		t.Error("more bytes than MaxBytes were taken")
	}
}

// Whatever is written is read back, or was refused.
func FuzzWrite(f *testing.F) {
	f.Add("cidata", "user-data", "meta-data", []byte("x"))
	f.Add("config-2", "openstack/latest/meta_data.json", "openstack/latest/user_data", []byte{})
	f.Add("l", strings.Repeat("é", 100), "\xff\xfe", []byte("\x00"))
	f.Fuzz(func(t *testing.T, label, one, two string, content []byte) {
		var image bytes.Buffer
		if iso.Write(&image, label, []iso.File{{Name: one, Content: content}, {Name: two, Content: content}}) != nil {
			return
		}
		r := reader{image.Bytes()}
		want := map[string]string{one: string(content), two: string(content)}
		if got, err := r.tree(16, false); err != nil || !maps.Equal(got, want) {
			t.Errorf("Rock Ridge: got %q, %v, want %q", got, err, want)
		}
		if got, err := r.tree(17, true); err != nil || len(got) != 2 {
			t.Errorf("Joliet: got %q, %v", got, err)
		}
	})
}
