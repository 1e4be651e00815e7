package bundle

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/build"
)

// manifests returns what a page of the documentation gives to commands by EOF, with the repository's URL in it.
func manifests(t *testing.T, page, url string) []string {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, part := range strings.Split(strings.ReplaceAll(string(raw), "<<'EOF'", "<<EOF"), "EOF\n") {
		if i%2 == 1 {
			all = append(all, strings.ReplaceAll(part, "$FLEET", url))
		}
	}
	return all
}

func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// The rights that docs/gitops/bundle.md gives to the Bundle of teams are enough for a commit with a team, its account,
// its Bundle and its VMs, and for the revert that takes them away; and they are enough for no other role.
func TestAFleetFromOneRepository(t *testing.T) {
	x := start(t)
	page := manifests(t, "../../docs/gitops/bundle.md", x.repo.URL)
	if len(page) < 4 {
		t.Fatalf("%d manifests found", len(page))
	}
	roles, err := build.Objects(t.Context(), os.DirFS("../../bundles/components/roles"), "", build.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range roles {
		if err := client.IgnoreAlreadyExists(x.Client.Create(t.Context(), o.Unstructured)); err != nil {
			t.Fatal(err)
		}
	}
	x.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}})
	x.create(manifest(t, page[1]))
	x.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet-teams"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "fleet-teams"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "fleet", Name: "teams"}},
	})
	x.repo.Write("vms/shop/web.yaml", machine)
	begun := x.repo.Commit("teams/shop.yaml", page[0])
	x.create(manifest(t, page[2]))
	x.bundle = &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "fleet"}}
	x.change(func(s *v1alpha1.BundleSpec) { s.Wait = new(bool) })
	x.ready(x.settle(), "main@sha1:"+begun)

	team := *x
	team.namespace, team.bundle = "shop", &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "vms"}}
	team.settle()
	if !team.exists(&v1.VirtualMachine{}, "web") {
		t.Fatalf("the team's VM is not there: %v", team.settle().Status.Conditions)
	}
	x.repo.Commit("teams/shop.yaml", strings.Replace(page[0], "name: kubevirt.io:admin", "name: cluster-admin", 1))
	x.failed(x.settle(), "Refused", "RoleBinding shop/vms (teams/shop.yaml)", "forbidden")
	x.repo.Write("teams/kustomization.yaml", "resources: []\n")
	gone := x.drop("teams/shop.yaml")
	x.settle()
	team.settle() // its Bundle lets go
	x.settle()
	ns := &corev1.Namespace{}
	if err := x.Client.Get(t.Context(), client.ObjectKey{Name: "shop"}, ns); err != nil || ns.DeletionTimestamp == nil {
		t.Errorf("the team's namespace stays: %v", err)
	}
	if b := x.settle(); b.Status.LastAppliedRevision != "main@sha1:"+gone {
		t.Errorf("applied is %s: %v", b.Status.LastAppliedRevision, b.Status.Conditions)
	}
}
