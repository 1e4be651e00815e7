// Package virtstack_test holds the laws of the source tree (CONTRIBUTING.md): who may import whom, and how long a
// file, a function and a parameter list may be. It parses the files itself, so that Go's test cache sees every one of
// them; the transitive check asks "go list" and is therefore run with -count=1.
package virtstack_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "virtstack.io/virtstack"

// source is one hand-written or generated Go file.
type source struct {
	path      string // slash-separated, from the root
	dir       string
	file      *ast.File
	set       *token.FileSet
	generated bool
	lines     int
}

func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

func (s source) imports() []string {
	var paths []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		path = filepath.ToSlash(path)
		all = append(all, source{path, filepath.ToSlash(filepath.Dir(path)), f, set, ast.IsGenerated(f), set.File(f.FileStart).LineCount()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("found %d Go files: is this the root of the tree?", len(all))
	}
	return all
}

// under reports whether dir is one of the folders or lies beneath one.
func under(dir string, folders ...string) bool {
	for _, f := range folders {
		if dir == f || strings.HasPrefix(dir, f+"/") {
			return true
		}
	}
	return false
}

func pure(dir string) bool {
	return under(dir, "machine", "controllers/podspec", "launcher/domain") || strings.HasSuffix(dir, "/plan")
}

// ban forbids imports to the folders that who selects.
type ban struct {
	name    string
	who     func(dir string) bool
	tests   bool // tests are bound too
	imports func(path string) bool
	because string
}

func oneOf(paths ...string) func(string) bool {
	return func(p string) bool { return under(p, paths...) }
}

func zone(name string) func(string) bool {
	return func(dir string) bool { return under(dir, name) }
}

func outside(folders ...string) func(string) bool {
	return func(dir string) bool { return !under(dir, folders...) }
}

func ours(folders ...string) func(string) bool {
	return func(p string) bool {
		rest, ok := strings.CutPrefix(p, module+"/")
		return ok && under(rest, folders...)
	}
}

var bans = []ban{
	{"pure packages do no input or output", pure, false,
		func(p string) bool {
			return p == "os" || p == "context" || p == "net" || strings.HasPrefix(p, "net/") && p != "net/netip" && p != "net/url" || under(p, "math/rand")
		}, "facts come in and values go out, so that every decision is tested without a cluster"},
	{"controllers stay in the cluster zone", zone("controllers"), true, ours("nodeagent", "launcher", "virtctl"), "zones meet in api/ and machine/"},
	{"the node agent stays in the node zone", zone("nodeagent"), true, ours("controllers", "launcher", "virtctl", "gitops"), "zones meet in api/ and machine/"},
	{"the launcher stays in the guest zone", zone("launcher"), true, ours("controllers", "nodeagent", "virtctl", "gitops", "kube"), "it holds no credentials and believes nothing"},
	{"virtctl stays in the user zone", zone("virtctl"), true, ours("controllers", "nodeagent", "launcher"), "what it shares with controllers is pure or in gitops/"},
	{"nobody imports a main", outside("cmd"), true, ours("cmd"), "a main does nothing"},
	{"nothing is run where Git is read", outside("launcher", "ci", "gitops/source/sourcetest", "kube/kubetest"), false, oneOf("os/exec"), "what a commit says must never reach a command line (threat G1)"},
	{"one home for libvirt", outside("launcher/driver/libvirt"), true, oneOf("libvirt.org/go/libvirt"), "the seam to libvirt is launcher/driver"},
	{"one home for links, rules and mounts", outside("nodeagent/network", "nodeagent/volume", "nodeagent/device", "nodeagent/cgroup", "ci"), false,
		oneOf("github.com/vishvananda/netlink", "github.com/vishvananda/netns", "github.com/google/nftables", "k8s.io/mount-utils"),
		"what can cut a node off the network has one home"},
}

func TestImportLaws(t *testing.T) {
	all := sources(t)
	for _, b := range bans {
		t.Run(b.name, func(t *testing.T) {
			for _, s := range all {
				if !b.who(s.dir) || s.test() && !b.tests {
					continue
				}
				for _, p := range s.imports() {
					if b.imports(p) {
						t.Errorf("%s imports %s: not allowed, because %s", s.path, p, b.because)
					}
				}
			}
		})
	}
}

// The clock is read by kube/loop and by shells; a pure package is given now.
func TestPurePackagesReadNoClock(t *testing.T) {
	for _, s := range sources(t) {
		if !pure(s.dir) || s.test() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if ok && (pkg.Name == "time" || pkg.Name == "metav1") && (sel.Sel.Name == "Now" || sel.Sel.Name == "Since" || sel.Sel.Name == "Until") {
				t.Errorf("%s: %s.%s in a pure package: take now as a parameter", s.set.Position(n.Pos()), pkg.Name, sel.Sel.Name)
			}
			return true
		})
	}
}

func TestPackageNamesSayWhatIsInside(t *testing.T) {
	for _, s := range sources(t) {
		switch strings.TrimSuffix(s.file.Name.Name, "_test") {
		case "util", "utils", "common", "helper", "helpers", "misc":
			t.Errorf("%s: package %s: a name says what is inside", s.path, s.file.Name.Name)
		}
	}
}

// Paths below a tenant's directory are opened by nodeagent/podfs alone (docs/decisions/0006-podfs.md).
func TestMountsAndPodPathsHaveOneHome(t *testing.T) {
	homes := outside("nodeagent/network", "nodeagent/volume", "nodeagent/device", "nodeagent/cgroup", "nodeagent/podfs", "ci", "launcher/driver/libvirt")
	for _, s := range sources(t) {
		if s.test() || !homes(s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if ok && (pkg.Name == "unix" || pkg.Name == "syscall") && (sel.Sel.Name == "Mount" || sel.Sel.Name == "Setns" || sel.Sel.Name == "Openat2") {
				t.Errorf("%s: %s.%s: mounts, namespaces and Pod directories have one home each in nodeagent/", s.set.Position(n.Pos()), pkg.Name, sel.Sel.Name)
			}
			return true
		})
	}
}
