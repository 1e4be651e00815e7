package disk

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

const dumpName = "web-dumps-20260102-030405.memory.dump"

func dumps(t *testing.T) (Dirs, string) {
	d := Dirs{Claims: t.TempDir()}
	dir := filepath.Join(d.Claims, "dumps")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return d, dir
}

func TestADumpIsKeptOrDropped(t *testing.T) {
	d, dir := dumps(t)
	for name, end := range map[string]func(*Dump) error{"kept": (*Dump).Keep, "dropped": (*Dump).Drop} {
		f, err := d.Dump("dumps", dumpName, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("memory")); err != nil {
			t.Fatal(err)
		}
		if err := end(f); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, dumpName)
		got, _ := os.ReadFile(path)
		if (string(got) == "memory") != (name == "kept") {
			t.Errorf("%s: there is %q", name, got)
		}
		_ = os.Remove(path)
	}
}

// S3: a claim that others write to as well is no way out of it, nor to what they have there.
func TestADumpGoesNowhereElse(t *testing.T) {
	d, dir := dumps(t)
	outside := filepath.Join(t.TempDir(), "outside")
	for name, put := range map[string]func(path string) error{
		"a link out":           func(p string) error { return os.Symlink(outside, p) },
		"a link within":        func(p string) error { return os.Symlink("disk.img", p) },
		"a file that is there": func(p string) error { return os.WriteFile(p, []byte("theirs"), 0o600) },
		"a directory":          func(p string) error { return os.Mkdir(p, 0o700) },
	} {
		path := filepath.Join(dir, dumpName)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Dump("dumps", dumpName, 1); err == nil {
			t.Errorf("%s was written over", name)
		}
		_ = os.Remove(path)
	}
	for _, wrong := range [][2]string{{"../dumps", dumpName}, {"dumps", "../x.memory.dump"}, {"dumps", "disk.img"}, {"", dumpName}, {"other", dumpName}} {
		if _, err := d.Dump(wrong[0], wrong[1], 1); err == nil {
			t.Errorf("%q: no error", wrong)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("written outside")
	}
}

func TestADumpThatDoesNotFitIsNotBegun(t *testing.T) {
	d, dir := dumps(t)
	if _, err := d.Dump("dumps", dumpName, math.MaxUint64); err == nil {
		t.Error("no error")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
