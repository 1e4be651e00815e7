package bundles_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"virtstack.io/virtstack/gitops/build"
)

func built(t *testing.T, dir string) []build.Object {
	t.Helper()
	objects, err := build.Objects(t.Context(), os.DirFS(".."), dir, build.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// One overlay sets the images of what it installs and, through the operator's environment, of what that installs.
func TestDevOverlaySetsEveryImage(t *testing.T) {
	var images, told []string
	kinds := map[string]int{}
	for _, o := range built(t, "overlays/dev") {
		kinds[o.GetKind()]++
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, c := range containers {
			images = append(images, c.(map[string]any)["image"].(string))
			env, _, _ := unstructured.NestedSlice(c.(map[string]any), "env")
			for _, e := range env {
				told = append(told, e.(map[string]any)["value"].(string))
			}
		}
	}
	slices.Sort(told)
	if want := []string{"localhost/virtstack:dev", "localhost/virtstack:dev"}; !slices.Equal(images, want) {
		t.Errorf("images: got %v, want %v", images, want)
	}
	if want := []string{"localhost/virt-launcher:dev", "localhost/virtstack:dev"}; !slices.Equal(told, want) {
		t.Errorf("environment: got %v, want %v", told, want)
	}
	if kinds["CustomResourceDefinition"] < 20 || kinds["Deployment"] != 2 || kinds["Namespace"] != 1 {
		t.Errorf("got %v", kinds)
	}
}

func role(t *testing.T, objects []build.Object, name string) rbacv1.ClusterRole {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "ClusterRole" && o.GetName() == name {
			var r rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &r); err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	t.Fatalf("there is no ClusterRole %s", name)
	return rbacv1.ClusterRole{}
}

func allows(r rbacv1.ClusterRole, verb, group, resource string) bool {
	return slices.ContainsFunc(r.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Verbs, verb) && slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource)
	})
}

// S17: the lines between the users' roles.
func TestUserRolesReachNoFurther(t *testing.T) {
	objects := built(t, "bundles/components/roles")
	const subresources = "subresources.kubevirt.io"
	view, edit, admin := role(t, objects, "kubevirt.io:view"), role(t, objects, "kubevirt.io:edit"), role(t, objects, "kubevirt.io:admin")
	for _, sub := range []string{"console", "vnc", "vnc/screenshot", "portforward", "usbredir"} {
		name := "virtualmachineinstances/" + sub
		if allows(view, "get", subresources, name) {
			t.Errorf("view reaches %s", name)
		}
		if got, want := allows(edit, "get", subresources, name), sub != "vnc/screenshot"; got != want {
			t.Errorf("edit reaches %s: %v, want %v", name, got, want)
		}
		if !allows(admin, "get", subresources, name) {
			t.Errorf("admin does not reach %s", name)
		}
	}
	if allows(view, "update", subresources, "virtualmachines/memorydump") || !allows(edit, "update", subresources, "virtualmachines/memorydump") {
		t.Error("memory dumps are for edit and admin")
	}
	if allows(edit, "deletecollection", "kubevirt.io", "virtualmachines") || !allows(admin, "deletecollection", "kubevirt.io", "virtualmachines") {
		t.Error("deletecollection is for admin")
	}
	for name, r := range map[string]rbacv1.ClusterRole{"admin": admin, "edit": edit, "view": view} {
		if allows(r, "create", "kubevirt.io", "virtualmachineinstancemigrations") || allows(r, "update", subresources, "virtualmachines/migrate") {
			t.Errorf("%s may migrate", name)
		}
		if r.Labels["rbac.authorization.k8s.io/aggregate-to-"+name] != "true" {
			t.Errorf("%s is not aggregated", name)
		}
		for _, never := range []string{"virtualmachineinstances/backup", "virtualmachineinstances/redefine-checkpoint", "virtualmachineinstances/vsock"} {
			if allows(r, "get", subresources, never) || allows(r, "update", subresources, never) {
				t.Errorf("%s reaches %s", name, never)
			}
		}
	}
}

// The account of the Bundle controllers has nothing but its own kind and impersonation of service accounts; it may ask
// whether a Bundle's namespace is going, and see that a source of Flux has something new.
func TestBundlesAccountHasNoRightsOfItsOwn(t *testing.T) {
	for _, rule := range role(t, built(t, "bundles/operator"), "kubevirt-bundles").Rules {
		own := slices.Equal(rule.APIGroups, []string{"virtstack.io"}) || slices.Equal(rule.Resources, []string{"events"})
		impersonation := slices.Equal(rule.Resources, []string{"serviceaccounts"}) && slices.Equal(rule.Verbs, []string{"impersonate"})
		asking := slices.Equal(rule.Resources, []string{"namespaces"}) && slices.Equal(rule.Verbs, []string{"get"})
		watching := slices.Equal(rule.APIGroups, []string{"source.toolkit.fluxcd.io"}) && slices.Equal(rule.Verbs, []string{"list", "watch"})
		if !own && !impersonation && !asking && !watching {
			t.Errorf("a rule too many: %v", rule)
		}
	}
}

// The operator hands out no role that is not named, and none to itself.
func TestOperatorEscalatesToNamedRolesOnly(t *testing.T) {
	for _, rule := range role(t, built(t, "bundles/operator"), "kubevirt.io:operator").Rules {
		escalates := slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "bind")
		if escalates && len(rule.ResourceNames) == 0 {
			t.Errorf("a rule without names: %v", rule)
		}
		if escalates && slices.ContainsFunc(rule.ResourceNames, func(n string) bool { return strings.Contains(n, "operator") }) {
			t.Errorf("the operator can raise its own role: %v", rule)
		}
		if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") {
			t.Errorf("a wildcard: %v", rule)
		}
	}
}

// Every role of the component bundle is one that the operator may hand out, and every binding is to such a one.
func TestOperatorMayHandOutWhatItInstalls(t *testing.T) {
	may := map[string]bool{"ClusterRole system:auth-delegator": true}
	for _, o := range built(t, "bundles/operator") {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
		for _, r := range rules {
			for _, name := range escalated(r.(map[string]any)) {
				may[o.GetKind()+" "+name] = true
			}
		}
	}
	for _, o := range built(t, "bundles/components") {
		name := o.GetKind() + " " + o.GetName()
		if strings.HasSuffix(o.GetKind(), "RoleBinding") {
			kind, _, _ := unstructured.NestedString(o.Object, "roleRef", "kind")
			to, _, _ := unstructured.NestedString(o.Object, "roleRef", "name")
			name = kind + " " + to
		}
		if strings.Contains(o.GetKind(), "Role") && !may[name] {
			t.Errorf("%s: %s is not in bundles/operator/operator-rbac.yaml", o, name)
		}
	}
}

func escalated(rule map[string]any) []string {
	verbs, _, _ := unstructured.NestedStringSlice(rule, "verbs")
	names, _, _ := unstructured.NestedStringSlice(rule, "resourceNames")
	if !slices.Contains(verbs, "bind") {
		return nil
	}
	return names
}
