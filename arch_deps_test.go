package virtstack_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What no package of these may reach by any path; "go list" is not seen by the test cache, so run with -count=1.
func TestTransitiveLaws(t *testing.T) {
	for _, law := range []struct {
		packages []string
		tags     string
		never    string
		because  string
	}{
		{[]string{"./launcher/...", "./cmd/virt-launcher"}, "libvirt_dlopen,libvirt_without_lxc", "k8s.io/client-go", "the launcher holds no credentials"},
		{[]string{"./machine/...", "./controllers/podspec", "./launcher/domain"}, "", "k8s.io/client-go", "pure packages talk to nobody"},
		{[]string{"./api/..."}, "", "k8s.io/client-go", "types travel, clients don't"},
	} {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-tags", law.tags, "-f", "{{.ImportPath}}"}, law.packages...)...)
		cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %v: %v", law.packages, err)
		}
		for _, p := range strings.Fields(string(out)) {
			if under(p, law.never) {
				t.Errorf("%v reaches %s: not allowed, because %s", law.packages, p, law.because)
			}
		}
	}
}

// Every */plan package is pure and reaches no client; they are found, not listed, so a new one can't be forgotten.
func TestPlansReachNoClient(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.dir, "/plan") {
			seen["./"+s.dir] = true
		}
	}
	for dir := range seen {
		out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}}", dir).Output()
		if err != nil {
			t.Fatalf("go list %s: %v", dir, err)
		}
		for _, p := range strings.Fields(string(out)) {
			if under(p, "k8s.io/client-go") {
				t.Errorf("%s reaches %s: a plan is a value", dir, p)
			}
		}
	}
}

// The dev cluster is a module of its own, but what both use has one version: the build cache is shared by it, which
// saves most of an hour on a cold machine.
func TestClusterModuleSharesVersions(t *testing.T) {
	product := versions(t, ".")
	for _, dir := range []string{"ci/cluster", "ci/flux", "ci/promql"} {
		shared := 0
		for path, v := range versions(t, dir) {
			w, ok := product[path]
			if !ok {
				continue
			}
			shared++
			// Flux's controllers and Prometheus' parser are to be the real ones: with them only what is large is shared.
			large := regexp.MustCompile(`^(k8s\.io|sigs\.k8s\.io|golang\.org/x|google\.golang\.org)/`).MatchString(path)
			if v != w && (dir == "ci/cluster" || large) {
				t.Errorf("%s is %s here and %s in %s: keep them in step", path, w, v, dir)
			}
		}
		if shared == 0 {
			t.Errorf("no module shared with %s found", dir)
		}
	}
}

func versions(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{if not .Replace}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "all")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -m in %s: %v", dir, err)
	}
	// Modules that give no package to a build may differ: only those that a go.mod names count.
	named := modFile(t, dir)
	found := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if path, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && named[path] {
			found[path] = v
		}
	}
	return found
}

func modFile(t *testing.T, dir string) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) >= 2 && strings.Contains(f[0], ".") {
			named[f[0]] = true
		}
	}
	return named
}
