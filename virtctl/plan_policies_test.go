package virtctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"virtstack.io/virtstack/gitops/source/sourcetest"
)

const exemptRoot = `apiVersion: v1
kind: ConfigMap
metadata: {name: policy-delete-protection, namespace: kubevirt}
data: {exempt: root}
`

// write writes files of a repository; one without content goes.
func write(t *testing.T, r *sourcetest.Repository, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(r.Dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		err := os.RemoveAll(path)
		if content != "" {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlanTellsWhichPoliciesAChangeBreaks(t *testing.T) {
	ours, err := filepath.Abs("../policies")
	if err != nil {
		t.Fatal(err)
	}
	larger := strings.Replace(ownedVM, "cores: 2", "cores: 64", 1)
	nobodys := strings.Replace(ownedVM, ", virtstack.io/owner: team-a", "", 1)
	protected := strings.Replace(ownedVM, "virtstack.io/owner: team-a", `virtstack.io/owner: team-a, kubevirt.io/vm-delete-protection: "True"`, 1)
	for name, tc := range map[string]struct {
		before, after string // vms/vm.yaml; empty: it isn't there
		beside        map[string]string
		args          []string
		code          int
		want, not     string
	}{
		"none":                                 {ownedVM, strings.Replace(ownedVM, "2}", "3}", 1), nil, nil, 0, "", "policy"},
		"this release's are told of":           {ownedVM, larger, nil, nil, 0, "breaks policy ceilings.policies.virtstack.io: spec.template.spec.domain.cpu: Invalid value: 64", "refused"},
		"what was broken before is no news":    {nobodys, strings.Replace(nobodys, "cores: 2", "cores: 3", 1), nil, nil, 0, "", "policy"},
		"an object that comes":                 {"", nobodys, nil, nil, 0, "metadata.labels[virtstack.io/owner]: Required value", "refused"},
		"those of --policies refuse":           {ownedVM, larger, nil, []string{"--policies", ours}, 3, "refused by policy ceilings.policies.virtstack.io: ", ""},
		"those among the files refuse":         {"", ownedVM, map[string]string{"vms/policy.yaml": ownPolicy}, nil, 3, "refused by policy names: metadata.name: must begin with vm-", "ceilings"},
		"a deletion":                           {protected, "", nil, []string{"--policies", ours}, 3, "refused by policy delete-protection.policies.virtstack.io: ", ""},
		"a deletion is told of":                {protected, "", nil, nil, 2, "breaks policy delete-protection.policies.virtstack.io: ", "refused"},
		"a deletion by one who is let through": {protected, "", map[string]string{"vms/params.yaml": exemptRoot}, []string{"--policies", ours, "--as-user", "root"}, 2, "", "policy delete"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sourcetest.Serve(t)
			write(t, r, tc.beside)
			write(t, r, map[string]string{"vms/keep.txt": "x", "vms/vm.yaml": tc.before})
			r.CommitAll()
			write(t, r, map[string]string{"vms/vm.yaml": tc.after})
			code, out, errOut := planOf(t, r, append([]string{"vms"}, tc.args...)...)
			if code != tc.code || !strings.Contains(out, tc.want) || tc.not != "" && strings.Contains(out, tc.not) {
				t.Errorf("got code %d, want %d with %q and without %q:\n%s%s", code, tc.code, tc.want, tc.not, out, errOut)
			}
		})
	}
}
