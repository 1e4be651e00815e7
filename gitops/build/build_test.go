package build_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"virtstack.io/virtstack/gitops/build"
)

const vm = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: %s}\nspec: {runStrategy: Halted}\n"

func files(content ...string) fs.FS {
	m := fstest.MapFS{}
	for i := 0; i < len(content); i += 2 {
		m[content[i]] = &fstest.MapFile{Data: []byte(content[i+1])}
	}
	return m
}

func object(name string) string { return fmt.Sprintf(vm, name) }

func TestObjectsNameTheirFile(t *testing.T) {
	for name, tc := range map[string]struct {
		files fs.FS
		dir   string
		want  []string
	}{
		"kustomization": {
			files("apps/kustomization.yaml", "resources: [../base, own.yaml]\nnamePrefix: x-\n", "apps/own.yaml", object("own"),
				"base/kustomization.yaml", "resources: [vm.yaml]\n", "base/vm.yaml", object("b")),
			"apps", []string{"VirtualMachine x-b (base/vm.yaml)", "VirtualMachine x-own (apps/own.yaml)"},
		},
		"no kustomization: every manifest beneath, bases whole, hidden ones not": {
			files("vms/a.yaml", object("a"), "vms/deep/b.yml", object("b"), "vms/README.md", "# no",
				"vms/base/kustomization.yaml", "resources: [vm.yaml]\n", "vms/base/vm.yaml", object("c"), "vms/base/unused.yaml", object("d"),
				"vms/.github/workflow.yaml", "on: push\n"),
			"vms", []string{"VirtualMachine a (vms/a.yaml)", "VirtualMachine b (vms/deep/b.yml)", "VirtualMachine c (vms/base/vm.yaml)"},
		},
		"the root": {files("a.yaml", object("a")+"---\n---\n"+object("b")), "", []string{"VirtualMachine a (a.yaml)", "VirtualMachine b (a.yaml)"}},
		"generated": {
			files("kustomization.yaml", "configMapGenerator: [{name: m, files: [f=data.bin]}]\ngeneratorOptions: {disableNameSuffixHash: true}\n", "data.bin", "x: [\n"),
			".", []string{"ConfigMap m"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := build.Objects(t.Context(), tc.files, tc.dir, build.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.String())
				if len(o.GetAnnotations()) > 0 {
					t.Errorf("%s has annotations that the commit has not: %v", o, o.GetAnnotations())
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// G2, G7: nothing is reached that is not of the commit, nothing runs, nothing is unbounded.
func TestHostileCommitsAreRefusedWithTheFile(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i < 'k'; i++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*%c, ", i-1), 9))
	}
	for name, tc := range map[string]struct {
		files fs.FS
		want  string
	}{
		"above the root":       {files("k/kustomization.yaml", "resources: [../../etc/passwd]\n"), `k/kustomization.yaml: "../../etc/passwd" leads out`},
		"absolute":             {files("k/kustomization.yaml", "resources: [/etc/passwd]\n"), "leads out"},
		"file of a generator":  {files("k/kustomization.yaml", "configMapGenerator: [{name: x, files: [t=../../run/token]}]\n"), "leads out"},
		"env file":             {files("k/kustomization.yaml", "secretGenerator: [{name: x, envs: [/proc/self/environ]}]\n"), "leads out"},
		"patch":                {files("k/kustomization.yaml", "patches: [{path: ../../p.yaml}]\n"), "leads out"},
		"remote base":          {files("k/kustomization.yaml", "resources: ['https://git.example.test/org/repo?ref=main']\n"), "is remote"},
		"remote base, short":   {files("k/kustomization.yaml", "resources: [github.com/org/repo]\n"), "is remote"},
		"remote base by ssh":   {files("k/kustomization.yaml", "resources: ['git@git.example.test:org/repo']\n"), "is remote"},
		"remote that is local": {files("k/kustomization.yaml", "resources: [github.com/org/repo]\n", "k/github.com/org/repo/kustomization.yaml", "resources: []\n"), "is remote"},
		"remote patch":         {files("k/kustomization.yaml", "patches: [{path: 'http://169.254.169.254/latest'}]\n"), "is remote"},
		"remote in a base":     {files("k/kustomization.yaml", "resources: [b]\n", "k/b/kustomization.yaml", "resources: ['http://x.example.test/a.yaml']\n"), "k/b/kustomization.yaml"},
		"helm":                 {files("k/kustomization.yaml", "helmCharts: [{name: x, repo: 'https://x.example.test'}]\n"), "helm charts"},
		"generator plugin":     {files("k/kustomization.yaml", "generators: [g.yaml]\n", "k/g.yaml", object("g")), "generators are not supported"},
		"transformer":          {files("k/kustomization.yaml", "transformers: [g.yaml]\n", "k/g.yaml", object("g")), "transformers are not supported"},
		"validator":            {files("k/kustomization.yaml", "validators: [g.yaml]\n", "k/g.yaml", object("g")), "validators are not supported"},
		"deep":                 {files("k/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: "+deep), "k/a.yaml"},
		"alias bomb":           {files("k/a.yaml", bomb), "aliases expanded"},
		"alias of itself":      {files("k/a.yaml", "a: &a [*a]\n"), "k/a.yaml"},
		"syntax":               {files("k/a.yaml", object("a"), "k/b.yaml", "apiVersion: v1\nkind: [\n"), "k/b.yaml: yaml: line"},
		"syntax, first line":   {files("k/b.yaml", "a: b: c\n  - x"), "k/b.yaml: yaml: line 1: mapping values are not allowed"},
		"not text":             {files("k/b.yaml", "a: b\nc: \x00\n"), "k/b.yaml: yaml: line 2: control characters"},
		"no anchor":            {files("k/b.yaml", "a: b\npassword: *hunter2\n"), "k/b.yaml: yaml: line 2: an alias (*) whose anchor (&) isn't in the document"},
		"no kind":              {files("k/a.yaml", object("a")+"---\nfoo: bar\n"), "k/a.yaml: document 2, line 6: apiVersion is missing"},
		"no name":              {files("k/a.yaml", "apiVersion: v1\nkind: ConfigMap\n"), "ConfigMap: metadata.name is missing"},
		"unknown field":        {files("k/kustomization.yaml", "resuorces: [a.yaml]\n"), "k/kustomization.yaml: line 1: "},
		"missing file":         {files("k/kustomization.yaml", "resources: [gone.yaml]\n"), `"gone.yaml" is not in the commit`},
		"two kustomizations":   {files("k/kustomization.yaml", "resources: []\n", "k/Kustomization", "resources: []\n"), "both there"},
		"base of itself":       {files("k/kustomization.yaml", "resources: [../k]\n"), "cycle"},
		"twice the same":       {files("k/a.yaml", object("a"), "k/b.yaml", object("a")), "VirtualMachine.v1.kubevirt.io/a.[noNs] is there twice: k/a.yaml, line 1, and k/b.yaml, line 1: one must go"},
		"twice, by a base":     {files("k/kustomization.yaml", "resources: [b, a.yaml]\n", "k/a.yaml", "# mine\n"+object("a"), "k/b/kustomization.yaml", "resources: [vm.yaml]\n", "k/b/vm.yaml", object("a")), "is there twice: k/b/vm.yaml, line 1, and k/a.yaml, line 2: one must go"},
		"no such directory":    {files("other/a.yaml", object("a")), "k is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := build.Objects(t.Context(), tc.files, "k", build.DefaultLimits)
			if !errors.Is(err, build.ErrRefused) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}

func TestLimitsHold(t *testing.T) {
	repo := files("a.yaml", object("a"), "b.yaml", object("b"), "c.yaml", object("c"))
	for name, change := range map[string]func(*build.Limits){
		"bytes":   func(l *build.Limits) { l.Bytes = 200 },
		"files":   func(l *build.Limits) { l.Files = 2 },
		"objects": func(l *build.Limits) { l.Objects = 2 },
		"values":  func(l *build.Limits) { l.Nodes = 5 },
		"depth":   func(l *build.Limits) { l.Depth = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			limits := build.DefaultLimits
			change(&limits)
			if _, err := build.Objects(t.Context(), repo, "", limits); !errors.Is(err, build.ErrRefused) {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

// A link inside the commit is followed; one that leads out is not, at whatever it points.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "token.yaml")
	write(t, outside, object("stolen"))
	write(t, filepath.Join(dir, "repo", "real.yaml"), object("a"))
	link(t, "real.yaml", filepath.Join(dir, "repo", "in", "..", "good.yaml"))
	root, err := os.OpenRoot(filepath.Join(dir, "repo"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	write(t, filepath.Join(dir, "repo", "ok", "kustomization.yaml"), "resources: [../good.yaml]\n")
	if got, err := build.Objects(t.Context(), root.FS(), "ok", build.DefaultLimits); err != nil || len(got) != 1 {
		t.Errorf("a link inside: got %v, %v", got, err)
	}
	for name, target := range map[string]string{"relative": "../../token.yaml", "absolute": outside} {
		t.Run(name, func(t *testing.T) {
			where := filepath.Join(dir, "repo", name)
			write(t, filepath.Join(where, "kustomization.yaml"), "resources: [vm.yaml]\n")
			link(t, target, filepath.Join(where, "vm.yaml"))
			_, err := build.Objects(t.Context(), root.FS(), name, build.DefaultLimits)
			if !errors.Is(err, build.ErrRefused) || !strings.Contains(err.Error(), "vm.yaml") {
				t.Errorf("got %v, want a refusal that names vm.yaml", err)
			}
		})
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Clean(name)); err != nil {
		t.Fatal(err)
	}
}
