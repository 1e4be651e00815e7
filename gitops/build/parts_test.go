package build_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

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

// Many files are built in parts, which gives what building them at once gives: kustomize is told of the same files here.
func TestManyFilesGiveTheSameAsOneKustomization(t *testing.T) {
	for name, more := range map[string]map[string]string{
		"VMs":                       {},
		"a subject's namespace":     {"a.yaml": account, "vm-030b.yaml": binding, "z.yaml": object("z") + "---\n" + account[:len(account)-17] + "}\n"},
		"the subject comes last":    {"a.yaml": binding, "z.yaml": account},
		"a list":                    {"l.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n", "m.yaml": object("m")},
		"a local object":            {"l.yaml": strings.Replace(object("l"), "{name: l}", `{name: l, annotations: {config.kubernetes.io/local-config: "true"}}`, 1)},
		"twice":                     {"z.yaml": object("vm-000")},
		"twice, once by default":    {"z.yaml": inDefault},
		"a generated name":          {"base/kustomization.yaml": generates, "p.yaml": reads},
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
			got, gotErr := build.Objects(all, "", build.DefaultLimits)
			var entries []string
			for file := range all {
				entries = append(entries, strings.TrimSuffix(file, "/kustomization.yaml"))
			}
			slices.Sort(entries)
			all["kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [" + strings.Join(entries, ", ") + "]\n")}
			want, wantErr := build.Objects(all, "", build.DefaultLimits)
			if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
				t.Fatalf("got %v, want %v", gotErr, wantErr)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
