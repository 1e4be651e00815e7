package closure

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"virtstack.io/virtstack/ci/images/closure/elftest"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// write makes a tree: a value that starts with "->" is a link.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		target, link := strings.CutPrefix(content, "->")
		var err error
		if link {
			err = os.Symlink(target, file)
		} else {
			err = os.WriteFile(file, []byte(content), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const lib = "usr/lib/x86_64-linux-gnu/"

func TestCopyFollowsWhatTheLoaderWouldMap(t *testing.T) {
	dir := write(t, map[string]string{
		"lib":                             "->usr/lib",
		"lib64":                           "->/usr/lib64",
		"usr/bin/program":                 string(elftest.File("/lib64/ld.so.2", "$ORIGIN/../lib/x86_64-linux-gnu/private", "liba.so.1", "libp.so")),
		"usr/lib64/ld.so.2":               "->/lib/x86_64-linux-gnu/ld.so",
		lib + "ld.so":                     string(elftest.File("", "")),
		lib + "liba.so.1":                 "->liba.so.1.2",
		lib + "liba.so.1.2":               string(elftest.File("", "", "libb.so")),
		lib + "libb.so":                   string(elftest.File("", "", "liba.so.1")), // a circle
		lib + "private/libp.so":           string(elftest.File("", "")),
		lib + "libunused.so":              string(elftest.File("", "")),
		"usr/share/data":                  "x",
		"usr/share/longer-than-a-magic-n": "not an ELF file",
	})
	tree := rootfs.New()
	if err := Copy(tree, dir, "usr/bin/program", "usr/share/data", "usr/share/longer-than-a-magic-n"); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range tree.Entries() {
		if !e.Mode.IsDir() {
			got = append(got, e.Path)
		}
	}
	want := []string{
		"usr/bin/program", lib + "ld.so", lib + "liba.so.1", lib + "liba.so.1.2", lib + "libb.so", lib + "private/libp.so",
		"usr/lib64/ld.so.2", "usr/share/data", "usr/share/longer-than-a-magic-n",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCopyNamesTheMissingLibrary(t *testing.T) {
	dir := write(t, map[string]string{"usr/bin/program": string(elftest.File("", "", "libgone.so.3"))})
	err := Copy(rootfs.New(), dir, "usr/bin/program")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "usr/bin/program") || !strings.Contains(err.Error(), "libgone.so.3") {
		t.Errorf("got error %v, want one that names the program and the library", err)
	}
}

func TestCopyFailsOnAMissingFile(t *testing.T) {
	if err := Copy(rootfs.New(), t.TempDir(), "usr/bin/program"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want %v", err, fs.ErrNotExist)
	}
}
