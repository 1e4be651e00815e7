package guest

import (
	"io/fs"
	"strings"
	"testing"

	"virtstack.io/virtstack/ci/images/rootfs"
)

func TestDiskBelongsToTheUserOfQEMUAndIsReadOnly(t *testing.T) {
	spec, err := Spec("somewhere")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range spec.Layers[0].Tree.Entries() {
		want := rootfs.Entry{Path: "disk", Mode: fs.ModeDir | 0o755}
		if !e.Mode.IsDir() {
			want = rootfs.Entry{Path: DiskPath, Mode: 0o440, Owner: rootfs.Owner{UID: 107, GID: 107}}
		}
		if e.Path != want.Path || e.Mode != want.Mode || e.Owner != want.Owner {
			t.Errorf("got %s %v %v, want %s %v %v", e.Path, e.Mode, e.Owner, want.Path, want.Mode, want.Owner)
		}
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
