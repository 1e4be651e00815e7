package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"virtstack.io/virtstack/launcher/domain"
)

func qcow2(change func([]byte)) []byte {
	h := make([]byte, 104)
	binary.BigEndian.PutUint32(h, qcow2Magic)
	binary.BigEndian.PutUint32(h[versionOffset:], 3)
	if change != nil {
		change(h)
	}
	return h
}

func TestFormat(t *testing.T) {
	for name, tc := range map[string]struct {
		header []byte
		want   domain.Format
		err    string
	}{
		"qcow2":              {qcow2(nil), domain.QCOW2, ""},
		"raw":                {bytes.Repeat([]byte{0xeb}, 512), domain.Raw, ""},
		"short":              {[]byte("QFI"), domain.Raw, ""},
		"empty":              {nil, "", "empty"},
		"backing file":       {qcow2(func(h []byte) { h[15] = 8 }), "", "backing file"},
		"encrypted":          {qcow2(func(h []byte) { h[cryptOffset+3] = 2 }), "", "encrypted"},
		"external data file": {qcow2(func(h []byte) { h[featuresOffset+7] = externalDataFile }), "", "external data file"},
	} {
		got, err := Format(bytes.NewReader(tc.header))
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %q, %v; want %q, %q", name, got, err, tc.want, tc.err)
		}
	}
}

// Links, devices and paths that lead out of an image are refused, and what they lead to is not opened.
func TestImageThatLeadsOut(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, []byte("not yours"))
	opened := watch(t, secret)
	for name, tc := range map[string]struct {
		path string
		make func(dir string) error
	}{
		"link to a file outside": {"", func(d string) error { return os.Symlink(secret, d+"/disk/disk.img") }},
		"relative link":          {"", func(d string) error { return os.Symlink("../../secret", d+"/disk/disk.img") }},
		"link within":            {"", func(d string) error { write(t, d+"/x", qcow2(nil)); return os.Symlink("../x", d+"/disk/disk.img") }},
		"chain of links": {"", func(d string) error {
			return errors.Join(os.Symlink(secret, d+"/a"), os.Symlink("../a", d+"/disk/disk.img"))
		}},
		"link to a process":        {"", func(d string) error { return os.Symlink("/proc/self/environ", d+"/disk/disk.img") }},
		"link to a device":         {"", func(d string) error { return os.Symlink("/dev/zero", d+"/disk/disk.img") }},
		"directory":                {"/disk/root.img", func(d string) error { return os.Mkdir(d+"/disk/root.img", 0o755) }},
		"link to a directory":      {"/disk/root.img", func(d string) error { return os.Symlink(filepath.Dir(secret), d+"/disk/root.img") }},
		"named pipe":               {"", func(d string) error { return unix.Mkfifo(d+"/disk/disk.img", 0o666) }},
		"path upwards":             {"../../secret", func(string) error { return nil }},
		"directory that is a link": {"/l/secret", func(d string) error { return os.Symlink(filepath.Dir(secret), d+"/l") }},
		"two images":               {"", func(d string) error { write(t, d+"/disk/a", nil); write(t, d+"/disk/b", nil); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "disk"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := tc.make(dir); err != nil {
				t.Fatal(err)
			}
			if s, err := image(dir, tc.path); err == nil {
				t.Errorf("accepted: %+v", s)
			}
			if opened() {
				t.Error("the file outside was opened")
			}
		})
	}
}

// watch returns what tells whether a file has been opened since.
func watch(t *testing.T, file string) func() bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, file, unix.IN_OPEN|unix.IN_ACCESS); err != nil {
		t.Fatal(err)
	}
	return func() bool {
		n, err := unix.Read(fd, make([]byte, 4096))
		return n > 0 || !errors.Is(err, unix.EAGAIN)
	}
}

func TestImageIsFound(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/disk/any.name", qcow2(nil))
	for _, path := range []string{"", "/disk/any.name"} {
		s, err := image(dir, path)
		if err != nil || s.Format != domain.QCOW2 || s.Path != dir+"/disk/any.name" {
			t.Errorf("path %q: %+v, %v", path, s, err)
		}
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func FuzzFormat(f *testing.F) {
	f.Add(qcow2(nil))
	f.Fuzz(func(t *testing.T, header []byte) {
		if format, err := Format(bytes.NewReader(header)); err == nil && format != domain.Raw && format != domain.QCOW2 {
			t.Errorf("format %q", format)
		}
	})
}
