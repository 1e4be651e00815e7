package subresource

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

// Threat S14: what is reviewed is what the URL says, however deep the subresource.
func TestReviewIsTheURL(t *testing.T) {
	type attributes = authorization.ResourceAttributes
	const g = "subresources.kubevirt.io"
	for path, want := range map[string]attributes{
		"GET /apis/" + g + "/v1/namespaces/shop/virtualmachineinstances/web/console":          {Verb: "get", Version: "v1", Namespace: "shop", Resource: "virtualmachineinstances", Name: "web", Subresource: "console"},
		"GET /apis/" + g + "/v1/namespaces/shop/virtualmachineinstances/db.primary/console":   {Verb: "get", Version: "v1", Namespace: "shop", Resource: "virtualmachineinstances", Name: "db.primary", Subresource: "console"},
		"GET /apis/" + g + "/v1/namespaces/shop/virtualmachineinstances/web/vnc":              {Verb: "get", Version: "v1", Namespace: "shop", Resource: "virtualmachineinstances", Name: "web", Subresource: "vnc"},
		"GET /apis/" + g + "/v1/namespaces/shop/virtualmachineinstances/web/vnc/screenshot":   {Verb: "get", Version: "v1", Namespace: "shop", Resource: "virtualmachineinstances", Name: "web", Subresource: "vnc/screenshot"},
		"PUT /apis/" + g + "/v1/namespaces/shop/virtualmachineinstances/web/sev/setupsession": {Verb: "update", Version: "v1", Namespace: "shop", Resource: "virtualmachineinstances", Name: "web", Subresource: "sev/setupsession"},
		"PUT /apis/" + g + "/v1alpha3/namespaces/shop/virtualmachines/web/evacuate/cancel":    {Verb: "update", Version: "v1alpha3", Namespace: "shop", Resource: "virtualmachines", Name: "web", Subresource: "evacuate/cancel"},
		"PUT /apis/" + g + "/v1/namespaces/shop/virtualmachines/web/a/b/c":                    {Verb: "update", Version: "v1", Namespace: "shop", Resource: "virtualmachines", Name: "web", Subresource: "a/b/c"},
		"PUT /apis/" + g + "/v1/namespaces/shop/expand-vm-spec":                               {Verb: "update", Version: "v1", Namespace: "shop", Resource: "expand-vm-spec"},
		"GET /apis/" + g + "/v1/namespaces/shop/virtualmachines":                              {Verb: "list", Version: "v1", Namespace: "shop", Resource: "virtualmachines"},
		"DELETE /apis/" + g + "/v1/namespaces/shop/virtualmachines/web/start/":                {Verb: "delete", Version: "v1", Namespace: "shop", Resource: "virtualmachines", Name: "web", Subresource: "start"},
		"POST /apis/" + g + "/v1/virtualmachines/web/start":                                   {Verb: "create", Version: "v1", Resource: "virtualmachines", Name: "web", Subresource: "start"},
		"PATCH /apis/" + g + "/v1/namespaces/namespaces/virtualmachines/namespaces/start":     {Verb: "patch", Version: "v1", Namespace: "namespaces", Resource: "virtualmachines", Name: "namespaces", Subresource: "start"},
	} {
		want.Group = g
		got := reviewed(t, path)
		if diff := cmp.Diff(&want, got.ResourceAttributes); diff != "" || got.NonResourceAttributes != nil {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestReviewOfOtherPaths(t *testing.T) {
	for path, want := range map[string]authorization.NonResourceAttributes{
		"GET /metrics": {Path: "/metrics", Verb: "get"},
		"PUT /apis/kubevirt.io/v1/namespaces/shop/virtualmachines/web":                       {Path: "/apis/kubevirt.io/v1/namespaces/shop/virtualmachines/web", Verb: "put"},
		"GET /namespaces/shop/virtualmachineinstances/web/console":                           {Path: "/namespaces/shop/virtualmachineinstances/web/console", Verb: "get"},
		"GET /v1/apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/web/start": {Path: "/v1/apis/subresources.kubevirt.io/v1/namespaces/shop/virtualmachines/web/start", Verb: "get"},
	} {
		got := reviewed(t, path)
		if diff := cmp.Diff(&want, got.NonResourceAttributes); diff != "" || got.ResourceAttributes != nil {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func reviewed(t *testing.T, request string) authorization.SubjectAccessReviewSpec {
	t.Helper()
	method, path, _ := cut(request)
	spec, err := review(httptest.NewRequest(method, path, nil), &user.DefaultInfo{Name: alice, UID: "u1", Groups: []string{"dev"}, Extra: map[string][]string{"scopes": {"a", "b"}}})
	if err != nil {
		t.Fatalf("%s: %v", request, err)
	}
	want := authorization.SubjectAccessReviewSpec{User: alice, UID: "u1", Groups: []string{"dev"}, Extra: map[string]authorization.ExtraValue{"scopes": {"a", "b"}}}
	want.ResourceAttributes, want.NonResourceAttributes = spec.ResourceAttributes, spec.NonResourceAttributes
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("%s: %s", request, diff)
	}
	return spec
}

// Every route asks for exactly the right that its URL names, and is refused without it.
func TestEveryRouteIsReviewed(t *testing.T) {
	for _, route := range Routes {
		s := newServer(t)
		var asked *authorization.ResourceAttributes
		s.Reviewer = reviewerFunc(func(spec authorization.SubjectAccessReviewSpec) (bool, string, error) {
			asked = spec.ResourceAttributes
			return false, "", nil
		})
		for _, version := range versions {
			want := &authorization.ResourceAttributes{Group: group, Version: version, Namespace: "shop",
				Resource: route.Resource, Subresource: route.Subresource, Verb: route.Verb()}
			path := base + "/" + version + "/namespaces/shop/" + route.Resource
			if !route.ofNamespace() {
				want.Name, path = "web", path+"/web/"+route.Subresource
			}
			w := ask(s, route.Method, path, "")
			if diff := cmp.Diff(want, asked); diff != "" || w.Code != http.StatusForbidden {
				t.Errorf("%s: HTTP %d, %s", route.Name(), w.Code, diff)
			}
		}
	}
}

// Threat S17, kubevirt/kubevirt#9120: what the roles for users grant of what is served.
func TestRolesOfUsers(t *testing.T) {
	reads := []string{"virtualmachineinstances/guestosinfo", "virtualmachineinstances/userlist", "virtualmachineinstances/filesystemlist",
		"virtualmachineinstances/objectgraph", "virtualmachines/objectgraph", "virtualmachines/expand-spec", "expand-vm-spec"}
	notForEditors := []string{"virtualmachineinstances/vnc/screenshot"}
	elsewhere := []string{"virtualmachines/migrate"} // granted by a role of its own
	for _, route := range Routes {
		name := route.Name()
		want := map[string]bool{"view": slices.Contains(reads, name), "edit": !slices.Contains(append(notForEditors, elsewhere...), name), "admin": !slices.Contains(elsewhere, name)}
		for role, granted := range want {
			if got := grants(t, role, name, route.Verb()); got != granted {
				t.Errorf("kubevirt.io:%s grants %s on %s: %t, want %t", role, route.Verb(), name, got, granted)
			}
		}
	}
	for _, secret := range []string{"virtualmachineinstances/console", "virtualmachineinstances/vnc", "virtualmachineinstances/vnc/screenshot", "virtualmachines/memorydump"} {
		if grants(t, "view", secret, "get") || grants(t, "view", secret, "update") {
			t.Errorf("kubevirt.io:view grants %s", secret)
		}
	}
}

func grants(t *testing.T, role, resource, verb string) bool {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "bundles", "components", "roles", role+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := rbac.ClusterRole{}
	if err := yaml.UnmarshalStrict(file, &r); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(r.Rules, func(rule rbac.PolicyRule) bool {
		return slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) && slices.Contains(rule.Verbs, verb)
	})
}
