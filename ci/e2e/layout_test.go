//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"virtstack.io/virtstack/ci/lab"
	"virtstack.io/virtstack/kube/kubetest"
)

// blank is an API server with nothing in it but Flux, and a repository as overlays/flux says to make one. Nobody acts on
// what is applied: what controllers would say is said by the test.
type blank struct {
	t          *testing.T
	kubeconfig string
	repo       *lab.Repo
}

func newBlank(t *testing.T) blank {
	t.Helper()
	t.Parallel()
	_, kubeconfig := kubetest.Empty(t)
	b := blank{t: t, kubeconfig: kubeconfig}
	controllers, err := theLab.StartFlux(t.Context(), "blank", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := controllers.Stop(); err != nil {
			t.Error(err)
		}
	})
	if b.repo, err = lab.Clone(t.Context(), fmt.Sprintf("layout-%d", time.Now().Unix()), filepath.Join(t.TempDir(), "repo")); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for from, to := range map[string]string{
		"overlays/flux": "", "bundles": "virtstack/bundles", "overlays/production": "virtstack/overlays/production",
	} {
		b.copied(files, from, to)
	}
	if _, err := b.repo.Commit(t.Context(), "Begin the fleet", files); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b blank) copied(files map[string][]byte, from, to string) {
	b.t.Helper()
	tree := os.DirFS(filepath.Join(theLab.Root, from))
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(tree, file)
		files[path.Join(to, file)] = []byte(strings.ReplaceAll(string(raw), "https://git.example.com/fleet.git", b.repo.URL))
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b blank) kubectl(args ...string) string {
	b.t.Helper()
	out, err := theLab.Kubectl(b.t.Context(), append([]string{"--kubeconfig", b.kubeconfig}, args...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// there waits for an object.
func (b blank) there(what ...string) {
	b.t.Helper()
	err := lab.Until(b.t.Context(), 2*time.Minute, strings.Join(what, " "), func(ctx context.Context) (bool, string, error) {
		out, err := theLab.Kubectl(ctx, append([]string{"--kubeconfig", b.kubeconfig, "get", "-o", "name"}, what...)...)
		return err == nil && out != "", out, err
	})
	if err != nil {
		b.t.Fatalf("%v\n%s", err, b.kubectl("get", "kustomizations.kustomize.toolkit.fluxcd.io,gitrepositories.source.toolkit.fluxcd.io", "-A"))
	}
}

// notYet fails if there are objects of a kind.
func (b blank) notYet(what ...string) {
	b.t.Helper()
	if out := b.kubectl(append([]string{"get", "-o", "name"}, what...)...); out != "" {
		b.t.Errorf("too early: %s", out)
	}
}

// The layout for Flux takes an empty cluster to one with VMs, from one commit: each part waits until the one before it is
// healthy, CRDs are there before what they define, and a team's account can do no more than it should.
func TestFluxLayoutFromNothing(t *testing.T) {
	b := newBlank(t)
	b.kubectl("apply", "--server-side", "-f", filepath.Join(b.repo.Dir, "clusters", "production", "entry.yaml"))
	b.there("deployment", "virt-operator", "-n", "kubevirt")
	b.notYet("kubevirts", "-A")
	for _, d := range []string{"deployment/virt-operator", "deployment/virt-bundles"} {
		b.kubectl("patch", d, "-n", "kubevirt", "--subresource=status", "--type=merge", "-p",
			`{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`)
	}
	for name := range strings.FieldsSeq(b.kubectl("get", "poddisruptionbudgets", "-n", "kubevirt", "-o", "name")) {
		b.kubectl("patch", name, "-n", "kubevirt", "--subresource=status", "--type=merge", "-p",
			`{"status":{"observedGeneration":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2,"disruptionsAllowed":1}}`)
	}
	b.there("kubevirt", "kubevirt", "-n", "kubevirt")
	b.notYet("namespace", "-l", "kustomize.toolkit.fluxcd.io/name=tenants")
	b.notYet("virtualmachineclusterinstancetypes")
	b.kubectl("apply", "--server-side", "-k", filepath.Join(theLab.Root, "bundles", "components", "roles"))
	b.kubectl("patch", "kubevirt", "kubevirt", "-n", "kubevirt", "--subresource=status", "--type=merge", "-p",
		`{"status":{"observedGeneration":1,"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"False"}]}}`)
	b.there("virtualmachineclusterinstancetypes", "u1.nano")
	b.there("virtualmachine", "web", "-n", "team-a")
	b.there("virtualmachine", "database", "-n", "team-b")
	b.kubectl("patch", "virtualmachine", "database", "-n", "team-b", "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":1}}`)
	b.exceeds()
	if by := b.kubectl("get", "virtualmachine", "web", "-n", "team-a", "-o", `jsonpath={.metadata.managedFields[*].manager}`); by != "kustomize-controller" {
		t.Errorf("web is written by %s", by)
	}
}

// exceeds commits for a team what its account may not do.
func (b blank) exceeds() {
	b.t.Helper()
	_, err := b.repo.Commit(b.t.Context(), "Take the cluster", map[string][]byte{
		"vms/team-b/kustomization.yaml": []byte("resources: [database.yaml, grab.yaml]\n"),
		"vms/team-b/grab.yaml": []byte("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: grab}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
			"subjects: [{kind: ServiceAccount, name: team-b, namespace: flux-system}]\n"),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.kubectl("annotate", "gitrepositories.source.toolkit.fluxcd.io", "fleet", "-n", "flux-system", "reconcile.fluxcd.io/requestedAt=now")
	err = lab.Until(b.t.Context(), time.Minute, "team-b to be refused", func(ctx context.Context) (bool, string, error) {
		out, err := theLab.Kubectl(ctx, "--kubeconfig", b.kubeconfig, "get", "kustomizations.kustomize.toolkit.fluxcd.io", "team-b", "-n", "flux-system",
			"-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
		return strings.Contains(out, "forbidden") && strings.Contains(out, "system:serviceaccount:flux-system:team-b"), out, err
	})
	if err != nil {
		b.t.Error(err)
	}
	b.notYet("clusterrolebindings", "-l", "kustomize.toolkit.fluxcd.io/name=team-b")
	b.there("virtualmachine", "database", "-n", "team-b")
}
