package guest

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"virtstack.io/virtstack/ci/images/rootfs"
)

func TestFilesBelongToTheUserOfQEMUAndAreReadOnly(t *testing.T) {
	spec, err := Spec(Files{"somewhere", "or", "other"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range spec.Layers {
		for _, e := range l.Tree.Entries() {
			want := rootfs.Entry{Mode: fs.ModeDir | 0o755}
			if !e.Mode.IsDir() {
				want = rootfs.Entry{Mode: 0o440, Owner: rootfs.Owner{UID: 107, GID: 107}}
			}
			if e.Mode != want.Mode || e.Owner != want.Owner {
				t.Errorf("%s is %v of %v, want %v of %v", e.Path, e.Mode, e.Owner, want.Mode, want.Owner)
			}
			got = append(got, e.Path)
		}
	}
	want := []string{"disk", DiskPath, "boot", InitrdPath, KernelPath}
	if !slices.Equal(got, want) {
		t.Errorf("the image holds %q, want %q", got, want)
	}
}

func TestOwnFilesThatAreScriptsCanBeRun(t *testing.T) {
	tree := rootfs.New()
	if err := copyFiles(tree); err != nil {
		t.Fatal(err)
	}
	want := map[string]fs.FileMode{"etc/init.d/boot": 0o755, "etc/acpi/PWRF/00000080": 0o755, "etc/inittab": 0o644, "etc/shadow": 0o600}
	for _, e := range tree.Entries() {
		if mode, ok := want[e.Path]; ok && e.Mode != mode {
			t.Errorf("%s: got mode %v, want %v", e.Path, e.Mode, mode)
		}
		delete(want, e.Path)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestReadUntilFailsAtTheEnd(t *testing.T) {
	console := strings.NewReader("GUEST: init up 1\n")
	if err := expect(console, "/nowhere"); err == nil || !strings.Contains(err.Error(), "seed applied") {
		t.Errorf("got error %v, want one that names what did not come", err)
	}
}
