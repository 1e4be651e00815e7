package build

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The stamp and go.mod must name one Kubernetes.
func TestVersionIsTheModules(t *testing.T) {
	raw, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "k8s.io/kubernetes "+version+"\n") {
		t.Errorf("go.mod doesn't require k8s.io/kubernetes %s", version)
	}
}

func TestArguments(t *testing.T) {
	p := program{out: "cni/", packages: []string{"a", "b"}, tags: "x"}
	want := []string{"build", "-ldflags", "-s -w", "-tags", "x", "-o", "/bin/cni/", "a", "b"}
	if got := p.arguments("/bin"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p = program{out: "/", packages: []string{"a"}}
	if got := p.arguments("/bin"); got[4] != "/bin/" {
		t.Errorf("output %q, want a directory", got[4])
	}
}

func TestNotListed(t *testing.T) {
	got := notListed("gcc installed\nkmod config-files\n", []string{"gcc", "kmod", "mount"})
	if want := []string{"kmod", "mount"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestLinkReplacesWhatWasThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubectl")
	if err := os.WriteFile(file, []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := link(file); err != nil {
			t.Fatal(err)
		}
	}
	if to, err := os.Readlink(file); err != nil || to != "kube" {
		t.Errorf("got %q %v, want kube", to, err)
	}
}

func TestStepTellsWhatFailed(t *testing.T) {
	var out bytes.Buffer
	boom := errors.New("boom")
	if err := step(&out, "building x", func() error { return boom }); !errors.Is(err, boom) || !strings.Contains(err.Error(), "building x") {
		t.Errorf("got %v", err)
	}
	if err := step(&out, "building y", func() error { return nil }); err != nil || !strings.Contains(out.String(), "building y") {
		t.Errorf("got %v, %q", err, out.String())
	}
}
