package launcher

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"

	guestv1 "virtstack.io/virtstack/api/guest/v1"
	"virtstack.io/virtstack/ci/images/closure/elftest"
	"virtstack.io/virtstack/ci/images/debian"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// packages is a tree that has every file the image takes, and a shell that it must not take.
func packages(t *testing.T) debian.Extracted {
	t.Helper()
	dir := t.TempDir()
	files := map[string][]byte{
		libraries + "libc.so.6": elftest.File("", ""), "usr/lib64/ld.so": elftest.File("", ""), "usr/bin/sh": elftest.File("", ""),
		dataDirs[0] + "/index.xml": []byte("<cpus/>"), dataDirs[1] + "/domain.rng": []byte("<grammar/>"),
	}
	for _, name := range programs {
		files[name] = elftest.File("/usr/lib64/ld.so", "", "libc.so.6")
	}
	for _, name := range slices.Concat(data, zones()) {
		files[name] = []byte("data")
	}
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return debian.Extracted{Dir: dir}
}

func TestBaseHasProgramsLibrariesAndMountPointsButNoShell(t *testing.T) {
	tree, err := Base(packages(t))
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Concat(programs, data, zones(), []string{libraries + "libc.so.6", "usr/lib64/ld.so", "etc/passwd", "dev", "proc", "sys", "tmp", guestv1.RunDir, guestv1.DiskDir})
	for _, name := range want {
		if !tree.Has(name) {
			t.Errorf("%s is missing", name)
		}
	}
	if tree.Has("usr/bin/sh") {
		t.Error("a shell got in")
	}
}

func TestBaseNamesWhatThePackagesLack(t *testing.T) {
	p := packages(t)
	if err := os.Remove(filepath.Join(p.Dir, "usr/bin/qemu-img")); err != nil {
		t.Fatal(err)
	}
	if _, err := Base(p); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v, want %v", err, fs.ErrNotExist)
	}
}

func TestCheckBareRefuses(t *testing.T) {
	for name, add := range map[string]func(*rootfs.Tree){
		"a shell":                 func(t *rootfs.Tree) { t.File("usr/bin/dash", nil, 0o755) },
		"a link named as a shell": func(t *rootfs.Tree) { t.Symlink("usr/bin/sh", "virt-launcher") },
		"busybox":                 func(t *rootfs.Tree) { t.File("opt/busybox", nil, 0o755) },
		"a setuid file":           func(t *rootfs.Tree) { t.File("usr/bin/helper", nil, 0o755|fs.ModeSetuid) },
	} {
		tree := rootfs.New()
		add(tree)
		if err := CheckBare(tree); !errors.Is(err, errNotBare) {
			t.Errorf("%s: got error %v, want %v", name, err, errNotBare)
		}
	}
}

func TestSpecPutsTheLauncherOnTopAsUser107(t *testing.T) {
	p := packages(t)
	spec, err := Spec(p, filepath.Join(p.Dir, "usr/bin/sh"))
	if err != nil {
		t.Fatal(err)
	}
	top := spec.Layers[len(spec.Layers)-1].Tree.Entries()
	if spec.User != "107:107" || len(spec.Layers) != 2 || path.Base(top[len(top)-1].Path) != "virt-launcher" {
		t.Errorf("got user %s, %d layers, top %v", spec.User, len(spec.Layers), top)
	}
}
