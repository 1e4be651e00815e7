package bundles_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/bundles"
)

// subresourceRoles is who may do what on subresources.kubevirt.io: the resource with its subresource, the verb, and
// the roles that have it. What is not here nobody has (S14, S17, kubevirt/kubevirt#9120).
var subresourceRoles = []struct{ resource, verb, roles string }{
	{"version", "get", "default"}, {"version", "list", "default"},
	{"guestfs", "get", "default"}, {"guestfs", "list", "default"},
	{"expand-vm-spec", "update", "admin edit view"},
	{"virtualmachineinstances/console", "get", "admin edit"},
	{"virtualmachineinstances/vnc", "get", "admin edit"},
	{"virtualmachineinstances/vnc/screenshot", "get", "admin"},
	{"virtualmachineinstances/portforward", "get", "admin edit"},
	{"virtualmachineinstances/usbredir", "get", "admin edit"},
	{"virtualmachineinstances/guestosinfo", "get", "admin edit view"},
	{"virtualmachineinstances/filesystemlist", "get", "admin edit view"},
	{"virtualmachineinstances/userlist", "get", "admin edit view"},
	{"virtualmachineinstances/objectgraph", "get", "admin edit view"},
	{"virtualmachineinstances/sev", "get", "admin edit view"},
	{"virtualmachineinstances/sev", "update", "admin edit"},
	{"virtualmachineinstances/evacuate", "update", "admin edit"},
	{"virtualmachines/evacuate", "update", "admin edit"},
	{"virtualmachineinstances/sev/fetchcertchain", "get", "admin edit view"},
	{"virtualmachineinstances/sev/querylaunchmeasurement", "get", "admin edit view"},
	{"virtualmachineinstances/sev/setupsession", "update", "admin edit"},
	{"virtualmachineinstances/sev/injectlaunchsecret", "update", "admin edit"},
	{"virtualmachineinstances/pause", "update", "admin edit"},
	{"virtualmachineinstances/unpause", "update", "admin edit"},
	{"virtualmachineinstances/addvolume", "update", "admin edit"},
	{"virtualmachineinstances/removevolume", "update", "admin edit"},
	{"virtualmachineinstances/freeze", "update", "admin edit"},
	{"virtualmachineinstances/unfreeze", "update", "admin edit"},
	{"virtualmachineinstances/softreboot", "update", "admin edit"},
	{"virtualmachineinstances/reset", "update", "admin edit"},
	{"virtualmachineinstances/evacuate/cancel", "update", "admin edit"},
	{"virtualmachines/objectgraph", "get", "admin edit view"},
	{"virtualmachines/expand-spec", "get", "admin edit view"},
	{"virtualmachines/portforward", "get", "admin edit"},
	{"virtualmachines/start", "update", "admin edit"},
	{"virtualmachines/stop", "update", "admin edit"},
	{"virtualmachines/restart", "update", "admin edit"},
	{"virtualmachines/addvolume", "update", "admin edit"},
	{"virtualmachines/removevolume", "update", "admin edit"},
	{"virtualmachines/memorydump", "update", "admin edit"},
	{"virtualmachines/removememorydump", "update", "admin edit"},
	{"virtualmachines/evacuate/cancel", "update", "admin edit"},
	{"virtualmachines/migrate", "update", "migrate"},
}

var userRoles = []string{"admin", "default", "edit", "migrate", "view"}

// grants are what a shipped role gives, each as "group resource verb".
func grants(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	files, err := fs.Glob(bundles.Components(), "roles/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := fs.ReadFile(bundles.Components(), file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(string(content), "\n---\n") {
			role := rbacv1.ClusterRole{}
			if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			name, ours := strings.CutPrefix(role.Name, "kubevirt.io:")
			if role.Kind != "ClusterRole" || !ours {
				continue
			}
			all[name] = flatten(role.Rules)
		}
	}
	return all
}

func flatten(rules []rbacv1.PolicyRule) map[string]bool {
	given := map[string]bool{}
	for _, r := range rules {
		for _, verb := range r.Verbs {
			grant(given, r, verb)
		}
	}
	return given
}

func grant(given map[string]bool, r rbacv1.PolicyRule, verb string) {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			given[group+" "+resource+" "+verb] = true
		}
	}
}

func TestEverySubresourceForEveryRole(t *testing.T) {
	all := grants(t)
	listed := map[string]bool{}
	for _, row := range subresourceRoles {
		key := "subresources.kubevirt.io " + row.resource + " " + row.verb
		listed[key] = true
		for _, role := range userRoles {
			want := slices.Contains(strings.Fields(row.roles), role)
			if got := all[role][key]; got != want {
				t.Errorf("%s has %q: %v, want %v", role, key, got, want)
			}
		}
	}
	for _, role := range userRoles {
		if len(all[role]) == 0 {
			t.Errorf("there is no role %s", role)
		}
		for key := range all[role] {
			if strings.HasPrefix(key, "subresources.kubevirt.io ") && !listed[key] {
				t.Errorf("%s has %q, which the table does not list", role, key)
			}
			if strings.Contains(key, "*") || strings.HasPrefix(key, "rbac.") {
				t.Errorf("%s has %q: no shipped role has wildcards or RBAC objects", role, key)
			}
		}
	}
}

func TestViewersOnlyLook(t *testing.T) {
	for key := range grants(t)["view"] {
		verb := key[strings.LastIndex(key, " ")+1:]
		if key != "subresources.kubevirt.io expand-vm-spec update" && !slices.Contains([]string{"get", "list", "watch"}, verb) {
			t.Errorf("view has %q", key)
		}
	}
}

func TestNobodyConfiguresTheCluster(t *testing.T) {
	for role, given := range grants(t) {
		if role == "operator" {
			continue
		}
		for key := range given {
			if strings.HasPrefix(key, "kubevirt.io kubevirts ") && !strings.HasSuffix(key, " get") && !strings.HasSuffix(key, " list") {
				t.Errorf("%s has %q", role, key)
			}
		}
	}
}
