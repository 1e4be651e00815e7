package build_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"virtstack.io/virtstack/gitops/build"
)

const (
	account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot, namespace: team}\n"
	binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: robot}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: robot}]
`
	inDefault = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: vm-000, namespace: default}\nspec: {runStrategy: Halted}\n"
	generates = "configMapGenerator: [{name: m, literals: [a=b]}]\n"
	reads     = `apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {volumes: [{name: v, configMap: {name: m}}], containers: [{name: c, image: i}]}
`
)

func many(n int) string {
	var all []string
	for i := range n {
		all = append(all, object(fmt.Sprintf("m-%02d", i)))
	}
	return strings.Join(all, "---\n")
}

// overlays are those of some cases of the test below.
var overlays = map[string]build.Overlay{
	"overlaid": {
		Namespace: "shop", NamePrefix: "a-", NameSuffix: "-z",
		Patches: []types.Patch{{Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: "VirtualMachine"}, Name: "vm-07.*"}},
			Patch: "- {op: replace, path: /spec/runStrategy, value: Always}"}},
		Images:    []types.Image{{Name: "i", NewTag: "2"}},
		Variables: build.Variables{Values: map[string]string{"who": "me"}},
	},
	"a patch of one": {Patches: []types.Patch{{Patch: "{apiVersion: kubevirt.io/v1, kind: VirtualMachine, metadata: {name: vm-040}, spec: {runStrategy: Manual}}"}}},
}

// Many files are built in parts, which gives what building them at once gives: kustomize is told of the same files here.
func TestManyFilesGiveTheSameAsOneKustomization(t *testing.T) {
	for name, more := range map[string]map[string]string{
		"VMs":                       {},
		"overlaid":                  {"a.yaml": account, "p.yaml": reads, "vm-030b.yaml": binding, "m.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {w: '${who}'}\n"},
		"a patch of one":            {},
		"a subject's namespace":     {"a.yaml": account, "vm-030b.yaml": binding, "z.yaml": object("z") + "---\n" + account[:len(account)-17] + "}\n"},
		"the subject comes last":    {"a.yaml": binding, "z.yaml": account},
		"a list":                    {"l.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n", "m.yaml": object("m")},
		"a local object":            {"l.yaml": strings.Replace(object("l"), "{name: l}", `{name: l, annotations: {config.kubernetes.io/local-config: "true"}}`, 1)},
		"twice":                     {"z.yaml": object("vm-000")},
		"twice, once by default":    {"z.yaml": inDefault},
		"a generated name":          {"base/kustomization.yaml": generates, "p.yaml": reads},
		"a file of many":            {"many.yaml": many(60), "n.yaml": account},
		"a file of many and others": {"many.yaml": many(40) + "---\n" + binding, "n.yaml": account},
		"a file of many, twice":     {"many.yaml": many(60) + "---\n" + object("m-01")},
		"a file of many, once more": {"many.yaml": "---\n# first\n" + many(60) + "---\n", "o.yaml": object("m-59")},
		"a file of many with ends":  {"many.yaml": strings.ReplaceAll(many(60), "---", "...\n---")},
		"two files of several each": {"b.yaml": object("b1") + "---\n" + binding + "---\n" + object("b2"), "y.yaml": account + "---\n" + object("y")},
	} {
		t.Run(name, func(t *testing.T) {
			all := fstest.MapFS{}
			for i := range 80 {
				n := fmt.Sprintf("vm-%03d", i)
				all[n+".yaml"] = &fstest.MapFile{Data: []byte(object(n))}
			}
			for file, content := range more {
				all[file] = &fstest.MapFile{Data: []byte(content)}
			}
			over := overlays[name]
			got, gotErr := build.Overlaid(t.Context(), all, "", build.DefaultLimits, over)
			var entries []string
			for file := range all {
				entries = append(entries, strings.TrimSuffix(file, "/kustomization.yaml"))
			}
			slices.Sort(entries)
			listing := "resources: [" + strings.Join(entries, ", ") + "]\n"
			all["kustomization.yaml"] = &fstest.MapFile{Data: []byte(listing)}
			listed, listedErr := build.Overlaid(t.Context(), all, "", build.DefaultLimits, over)
			all["whole.yml"] = &fstest.MapFile{Data: []byte("nameReference: []\n")} // configurations keep it in one part
			all["kustomization.yaml"] = &fstest.MapFile{Data: []byte(listing + "configurations: [whole.yml]\n")}
			want, wantErr := build.Overlaid(t.Context(), all, "", build.DefaultLimits, over)
			if _, overlaid := overlays[name]; overlaid && gotErr != nil {
				t.Error(gotErr)
			}
			if diff := cmp.Diff(got, listed); diff != "" || (gotErr == nil) != (listedErr == nil) {
				t.Errorf("with a kustomization that lists the same: %v, not %v:\n%s", listedErr, gotErr, diff)
			}
			if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
				t.Fatalf("got %v, want %v", gotErr, wantErr)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
