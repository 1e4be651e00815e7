package source_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"virtstack.io/virtstack/gitops/source"
	"virtstack.io/virtstack/gitops/source/sourcetest"
)

func TestACommitOfALocalRepository(t *testing.T) {
	r := sourcetest.Serve(t)
	first := r.Commit("vms/web.yaml", "one\n")
	for target, link := range map[string]string{"web.yaml": "vms/same.yaml", "vms": "dir", "../../etc/passwd": "vms/out", "/etc/passwd": "vms/root", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(r.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	second := r.Commit("vms/web.yaml", "two\n")
	r.Git("gc", "-q")
	if err := os.WriteFile(filepath.Join(r.Dir, "vms/web.yaml"), []byte("three\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	local, err := source.OpenLocal(filepath.Join(r.Dir, "vms"))
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := filepath.EvalSymlinks(r.Dir); local.Root != want {
		t.Errorf("the root is %s, want %s", local.Root, want)
	}
	for revision, want := range map[string]struct{ hash, content string }{
		"HEAD": {second, "two\n"}, "HEAD~1": {first, "one\n"}, "main": {second, "two\n"}, first: {first, "one\n"},
	} {
		files, hash, err := local.Commit(revision)
		if err != nil {
			t.Fatal(err)
		}
		got, err := fs.ReadFile(files, "vms/web.yaml")
		if err != nil || string(got) != want.content || hash != want.hash {
			t.Errorf("%s: got %q of %s, %v; want %q of %s", revision, got, hash, err, want.content, want.hash)
		}
	}
	files, _, err := local.Commit("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"vms/same.yaml": true, "dir/web.yaml": true, "dir/same.yaml": true, "vms/out": false, "vms/root": false, "loop": false, "gone": false} {
		_, err := fs.ReadFile(files, name)
		if (err == nil) != want || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want it there: %t", name, err, want)
		}
	}
	if _, _, err := local.Commit("no-such"); !errors.Is(err, source.ErrRef) {
		t.Errorf("got %v", err)
	}
}

func TestACommitIsAFileSystem(t *testing.T) {
	r := sourcetest.Serve(t)
	r.Commit("a/b.yaml", "b")
	r.Commit("c.yaml", "c")
	local, err := source.OpenLocal(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	files, _, err := local.Commit("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(files, "a/b.yaml", "c.yaml"); err != nil {
		t.Error(err)
	}
}

func TestADirectoryInNoRepository(t *testing.T) {
	if _, err := source.OpenLocal(t.TempDir()); !errors.Is(err, source.ErrNoRepository) {
		t.Errorf("got %v", err)
	}
}
