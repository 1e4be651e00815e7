package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// versionOf builds virtctl from the working directory as the targets do, whatever GOFLAGS says of commits, and returns
// what it says of itself.
func versionOf(t *testing.T) string {
	t.Helper()
	t.Setenv("GOFLAGS", "-buildvcs=false -trimpath")
	t.Setenv("CGO_ENABLED", "0")
	dir := t.TempDir()
	if err := virtctl(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	return output(t, filepath.Join(dir, "kubectl-virt"), "version", "--client")
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return strings.TrimSpace(string(out))
}

// The virtctl that make builds names the commit of the checkout; where there is none it is built all the same.
func TestVirtctlNamesItsCommit(t *testing.T) {
	t.Chdir("../..")
	if err := exec.CommandContext(t.Context(), "git", "rev-parse").Run(); err != nil {
		if got := versionOf(t); strings.Contains(got, "commit") {
			t.Errorf("built of no commit, it says %s", got)
		}
		return
	}
	if got, want := versionOf(t), "commit "+output(t, "git", "rev-parse", "HEAD"); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s in it", got, want)
	}
	tree := t.TempDir()
	copied(t.Context(), t, tree)
	t.Chdir(tree)
	if got := versionOf(t); strings.Contains(got, "commit") {
		t.Errorf("built of no commit, it says %s", got)
	}
}

// copied writes the files of the commit to a directory, as a release's archive has them.
func copied(ctx context.Context, t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.CommandContext(ctx, "sh", "-c", "git archive HEAD | tar -x -C \"$0\"", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
