package virtctl

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/gitops/source/sourcetest"
	"virtstack.io/virtstack/machine/change"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// planOf runs plan in a repository.
func planOf(t *testing.T, r *sourcetest.Repository, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Chdir(r.Dir)
	var o, e bytes.Buffer
	code = Run(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &o, ErrOut: &e}, append([]string{"virtctl", "plan"}, args...))
	return code, o.String(), e.String()
}

// committed returns a repository with a commit of the files in a directory of testdata/plan.
func committed(t *testing.T, dir string) *sourcetest.Repository {
	t.Helper()
	r := sourcetest.Serve(t)
	lay(t, r, dir)
	r.CommitAll()
	return r
}

// lay puts the files of a directory of testdata/plan in the place of all others.
func lay(t *testing.T, r *sourcetest.Repository, dir string) {
	t.Helper()
	vms := filepath.Join(r.Dir, "vms")
	if err := os.RemoveAll(vms); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(vms, os.DirFS(filepath.Join(home, "testdata", "plan", dir))); err != nil {
		t.Fatal(err)
	}
}

// home is where the tests start.
var home, _ = os.Getwd()

func TestPlanOfACommit(t *testing.T) {
	r := committed(t, "before")
	lay(t, r, "after")
	for output, file := range map[string]string{"": "table", "json": "json", "yaml": "yaml", "markdown": "markdown"} {
		code, out, errOut := planOf(t, r, "vms", "--output", output)
		if code != 2 || errOut != "" {
			t.Errorf("%s: code %d, %s", file, code, errOut)
		}
		out = strings.ReplaceAll(out, strings.TrimSpace(r.Git("rev-parse", "--short=12", "HEAD")), "COMMIT")
		if strings.Contains(out, "hunter") {
			t.Errorf("%s shows a secret", file)
		}
		golden(t, filepath.Join(home, "testdata", "plan", file+".golden"), out)
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestPlanCodes(t *testing.T) {
	r := committed(t, "before")
	first := strings.TrimSpace(r.Git("rev-parse", "HEAD"))
	lay(t, r, "after")
	r.CommitAll()
	web := filepath.Join(r.Dir, "vms", "web.yaml")
	for name, tc := range map[string]struct {
		content string // of web.yaml; empty: as it is committed
		args    []string
		code    int
		out     string
	}{
		"nothing":             {"", []string{"vms"}, 0, "nothing changes"},
		"two revisions":       {"", []string{"vms", "--from", "HEAD~1", "--to", "main"}, 2, "restart"},
		"by hash":             {"", []string{"-k", "vms", "--from", first}, 2, "restart"},
		"the other way":       {"", []string{"vms", "--from", "HEAD", "--to", "HEAD~1"}, 2, "restart"},
		"refused":             {strings.Replace(goodVM, "128Mi", `"0"`, 1), []string{"vms"}, 3, "REFUSED"},
		"can't be built":      {"a: b\n", []string{"vms"}, 3, ""},
		"gone from a commit":  {"", []string{"nowhere"}, 1, ""},
		"no such revision":    {"", []string{"vms", "--from", "nowhere"}, 1, ""},
		"no directory":        {"", nil, 1, ""},
		"two directories":     {"", []string{"vms", "-k", "vms"}, 1, ""},
		"an output of no use": {"", []string{"vms", "-o", "xml"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r.Git("checkout", "-q", "--", ".")
			if tc.content != "" {
				if err := os.WriteFile(web, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, out, errOut := planOf(t, r, tc.args...)
			if code != tc.code || !strings.Contains(out, tc.out) || (code == 1) != (out == "" && errOut != "" && code != 3) {
				t.Errorf("got code %d, want %d with %q:\n%s%s", code, tc.code, tc.out, out, errOut)
			}
		})
	}
}

func TestPlanOfANewDirectory(t *testing.T) {
	r := sourcetest.Serve(t)
	r.Commit("README", "x")
	lay(t, r, "before")
	code, out, errOut := planOf(t, r, "vms", "-o", "json")
	got := plan.Report{}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("code %d: %v: %s%s", code, err, out, errOut)
	}
	for _, i := range got.Objects {
		if i.Change != plan.Created {
			t.Errorf("%s is %s", i, i.Change)
		}
	}
}

func TestPlanOutsideOfARepository(t *testing.T) {
	t.Chdir(t.TempDir())
	var o, e bytes.Buffer
	code := Run(t.Context(), genericiooptions.IOStreams{Out: &o, ErrOut: &e}, []string{"virtctl", "plan", "."})
	if code != 1 || !strings.Contains(e.String(), "not in a Git repository") {
		t.Errorf("code %d: %s", code, e.String())
	}
}

// A generated Secret has another name when its content is another, and with bundles/kustomize its VMs name that one: that
// is a change of theirs, which a restart takes.
func TestPlanOfAGeneratedSecret(t *testing.T) {
	r := sourcetest.Serve(t)
	if err := os.CopyFS(filepath.Join(r.Dir, "kustomize"), os.DirFS(filepath.Join(home, "..", "bundles", "kustomize"))); err != nil {
		t.Fatal(err)
	}
	seeded := strings.NewReplacer("Halted", "Always", "devices: {}\n", "devices: {}\n      volumes: [{name: seed, cloudInitNoCloud: {secretRef: {name: seed}}}]\n").Replace(goodVM)
	kustomization := "components: [../kustomize]\nresources: [vm.yaml]\nsecretGenerator: [{name: seed, literals: [userdata=%s]}]\n"
	write(t, r, map[string]string{"vms/vm.yaml": seeded, "vms/kustomization.yaml": fmt.Sprintf(kustomization, "hunter1")})
	r.CommitAll()
	write(t, r, map[string]string{"vms/kustomization.yaml": fmt.Sprintf(kustomization, "hunter2")})
	code, out, errOut := planOf(t, r, "vms", "-o", "json")
	got := plan.Report{}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 2 || strings.Contains(out, "hunter") {
		t.Fatalf("code %d: %v: %s%s", code, err, out, errOut)
	}
	for _, i := range got.Objects {
		if i.Kind != "VirtualMachine" {
			continue
		}
		if paths := change.Paths(i.Fields, change.Restart); i.Class != change.Restart || len(paths) != 1 || !strings.HasPrefix(paths[0], "spec.template.spec.volumes[seed].cloudInitNoCloud.secretRef") {
			t.Errorf("the VM is %s by %v", i.Class, i.Fields)
		}
		return
	}
	t.Errorf("no VM in %s", out)
}
