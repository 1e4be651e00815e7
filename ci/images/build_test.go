package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"virtstack.io/virtstack/ci/images/oci"
	"virtstack.io/virtstack/ci/images/rootfs"
)

// fakeRecipe makes an image of one file and counts how often.
func fakeRecipe(file string, built *int) recipe {
	return recipe{
		name:    "fake",
		compile: func(context.Context) ([]string, error) { return []string{file}, nil },
		spec: func(context.Context) (oci.Spec, error) {
			*built++
			tree := rootfs.New()
			tree.Copy("program", file, 0o755)
			return oci.Spec{Layers: []oci.Layer{{Name: "program", Tree: tree}}}, nil
		},
	}
}

func TestImageIsBuiltAgainOnlyWhenItsInputsChange(t *testing.T) {
	dir := t.TempDir()
	b := &builder{out: dir, cache: dir, log: t.Output()}
	file, built := filepath.Join(dir, "program"), 0
	r, record := fakeRecipe(file, &built), Record{}
	step := func(want int) Record {
		t.Helper()
		got, err := b.bringUpToDate(t.Context(), r, record)
		if err != nil {
			t.Fatal(err)
		}
		if built != want {
			t.Errorf("the image was built %d times, want %d", built, want)
		}
		return got
	}
	write := func(content string) {
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	record = step(1)
	step(1)
	write("two")
	if second := step(2); second.Ref == record.Ref {
		t.Errorf("another content has the same name %s", second.Ref)
	}
	write("one")
	if err := os.Remove(filepath.Join(dir, "fake.tar")); err != nil {
		t.Fatal(err)
	}
	if third := step(3); third != record {
		t.Errorf("got %+v, want %+v as before", third, record)
	}
}

func TestRecordsAreKeptBetweenRuns(t *testing.T) {
	b := &builder{out: t.TempDir()}
	want := Record{Ref: "localhost/fake:0123", Archive: "fake.tar", Bytes: 2, CompressedBytes: 1, Inputs: "x"}
	if err := b.writeRecords(map[string]Record{"fake": want}); err != nil {
		t.Fatal(err)
	}
	got, err := b.records()
	if err != nil || got["fake"] != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestUnknownNamesAndCommandsAreRefused(t *testing.T) {
	for _, args := range [][]string{{}, {"bake"}, {"build", "cake"}} {
		if err := run(t.Context(), args); err == nil {
			t.Errorf("%q: got no error", args)
		}
	}
	if err := run(t.Context(), []string{"build", "cake"}); !strings.Contains(err.Error(), `"cake"`) {
		t.Errorf("got error %v, want the name in it", err)
	}
}

// The later version is the same but for its stamps and its names, and is built only when it is asked for.
func TestALaterVersionOfTheImages(t *testing.T) {
	b := &builder{cache: t.TempDir(), out: t.TempDir(), log: t.Output()}
	now, err := b.named(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range now {
		if r.next != "" {
			t.Errorf("%s is built without being named", r.name)
		}
	}
	later, err := b.named([]string{"virtstack-next", "virt-launcher-next"})
	if err != nil || len(later) != 2 || later[0].next != "virtstack" || later[1].next != "virt-launcher" {
		t.Fatalf("the later version is %v, %v", later, err)
	}
	if flags := b.next().stamp.flags(); !strings.Contains(flags, "release.Version=v0.3.0") || !strings.Contains(flags, "guest/v1.newest=3") {
		t.Errorf("its flags are %s", flags)
	}
	if flags := b.this().stamp.flags(); flags != "-s -w" {
		t.Errorf("this version's flags are %s", flags)
	}
}

// A version tells the commit that it was built of and when that was made, and is built of nothing else.
func TestAVersionIsBuiltOfACommit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "one")
	want := commit{git("rev-parse", "HEAD"), "2026-01-02T03:04:05Z"}
	if got, err := head(t.Context(), dir); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	flags := stamp{version: "v1.2.3", commit: want}.flags()
	for _, part := range []string{"release.Version=v1.2.3", "release.Commit=" + want.hash, "release.BuildDate=" + want.date} {
		if !strings.Contains(flags, part) {
			t.Errorf("%s is missing in %s", part, flags)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "change"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := head(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "commit these changes") {
		t.Errorf("with a change: %v", err)
	}
}
