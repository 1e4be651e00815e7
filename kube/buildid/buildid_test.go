package buildid

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// build builds a program that says a word, as the images' programs are built.
func build(t *testing.T, word string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":  "module example.com/say\n",
		"main.go": "package main\n\nfunc main() { println(\"" + word + "\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", "say", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return of(filepath.Join(dir, "say"))
}

func TestTheSameSourceIsTheSameBuild(t *testing.T) {
	one, again, other := build(t, "one"), build(t, "one"), build(t, "other")
	if len(one) != 12 || one != again || one == other {
		t.Errorf("one source in two places: %q and %q; another: %q", one, again, other)
	}
	if own := Own(); len(own) != 12 || own == one {
		t.Errorf("this program: %q", own)
	}
	if got := of("buildid.go"); got != "" {
		t.Errorf("of no program: %q", got)
	}
}
