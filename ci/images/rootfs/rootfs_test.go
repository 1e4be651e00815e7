package rootfs

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sample is a tree with one entry of every kind; its file comes from the disk with the time given.
func sample(t *testing.T, at time.Time) *Tree {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("from disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(source, at, at); err != nil {
		t.Fatal(err)
	}
	tree := New()
	tree.Copy("usr/bin/program", source, 0o755)
	tree.File("/etc/passwd", []byte("root"), 0o644)
	tree.Symlink("bin", "usr/bin")
	tree.Dir("tmp", 0o777|fs.ModeSticky, Root)
	tree.Dir("home/user", 0o700, Owner{107, 107})
	return tree
}

func TestTarListsSortedEntriesWithFixedTimes(t *testing.T) {
	var packed bytes.Buffer
	if err := sample(t, time.Now()).Tar(&packed); err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(&packed); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %o %d:%d %d %s", h.Name, h.Mode, h.Uid, h.Gid, h.ModTime.Unix(), h.Linkname))
	}
	want := []string{
		"bin 777 0:0 0 usr/bin", "etc/ 755 0:0 0 ", "etc/passwd 644 0:0 0 ", "home/ 755 0:0 0 ", "home/user/ 700 107:107 0 ",
		"tmp/ 1777 0:0 0 ", "usr/ 755 0:0 0 ", "usr/bin/ 755 0:0 0 ", "usr/bin/program 755 0:0 0 ",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSameTreeGivesSameBytes(t *testing.T) {
	for name, write := range map[string]func(*Tree, io.Writer) error{"tar": (*Tree).Tar, "cpio": (*Tree).CPIO} {
		var a, b bytes.Buffer
		if err := write(sample(t, time.Now()), &a); err != nil {
			t.Fatal(err)
		}
		if err := write(sample(t, time.Unix(1, 0)), &b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%s: two trees of the same content differ", name)
		}
	}
}

func TestCPIORecordsAreAligned(t *testing.T) {
	var packed bytes.Buffer
	if err := sample(t, time.Now()).CPIO(&packed); err != nil {
		t.Fatal(err)
	}
	rest, names := packed.Bytes(), []string{}
	for len(rest) > 0 {
		var size, length int
		if _, err := fmt.Sscanf(string(rest[54:62])+" "+string(rest[94:102]), "%x %x", &size, &length); err != nil || string(rest[:6]) != "070701" {
			t.Fatalf("record %d does not start with a header: %q, %v", len(names), rest[:6], err)
		}
		names = append(names, string(rest[110:110+length-1]))
		rest = rest[align(110+length)+align(size):]
	}
	if got := strings.Join(names, " "); !strings.HasPrefix(got, "bin etc etc/passwd") || !strings.HasSuffix(got, "usr/bin/program TRAILER!!!") {
		t.Errorf("got records %q", got)
	}
}

func align(n int) int { return (n + 3) / 4 * 4 }

func TestExtractWritesWhatTheTreeHolds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	if err := sample(t, time.Now()).Extract(dir); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "bin/program"))
	if err != nil || string(got) != "from disk" {
		t.Errorf("got %q, %v through the link, want %q", got, err, "from disk")
	}
}

func TestOwnNeedsAnEntry(t *testing.T) {
	if err := New().Own("nothing", Root); err == nil {
		t.Error("got no error for an entry that is not there")
	}
}
