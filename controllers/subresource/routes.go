package subresource

import (
	"net/http"
	"slices"
	"strings"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/controllers/subresource/plan"
)

const (
	group = v1.SubresourceGroupName
	base  = "/apis/" + group
)

// versions are served alike, the preferred one first.
var versions = []string{"v1", "v1alpha3"}

// verb serves one request that is allowed. An error is what it is answered with.
type verb func(*Server, http.ResponseWriter, *http.Request, Target) error

// Route is one verb: the URL it is served at, which is what is reviewed, and its method.
type Route struct {
	Resource, Subresource, Method string
	serve                         verb
}

// Routes are all verbs there are.
var Routes = []Route{
	{"virtualmachineinstances", "console", http.MethodGet, (*Server).console},
	{"virtualmachineinstances", "pause", http.MethodPut, (*Server).pause},
	{"virtualmachineinstances", "unpause", http.MethodPut, (*Server).unpause},
	{"virtualmachines", "start", http.MethodPut, decided(plan.Start, func(o v1.StartOptions) []string { return o.DryRun }, overrideOf)},
	{"virtualmachines", "stop", http.MethodPut, decided(plan.Stop, func(o v1.StopOptions) []string { return o.DryRun }, overrideOf)},
	{"virtualmachines", "restart", http.MethodPut, decided(plan.Restart, func(o v1.RestartOptions) []string { return o.DryRun }, noOverride)},
	{"virtualmachines", "memorydump", http.MethodPut, (*Server).memoryDump},
	{"virtualmachines", "removememorydump", http.MethodPut, (*Server).removeMemoryDump},
	{"virtualmachines", "expand-spec", http.MethodGet, (*Server).expandSpec},
	{"expand-vm-spec", "", http.MethodPut, (*Server).expandVMSpec},
}

// Name is what the route is called in RBAC rules and in discovery.
func (r Route) Name() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// ofNamespace tells that the route is a namespace's own, not that of an object in it.
func (r Route) ofNamespace() bool { return r.Subresource == "" }

// Verb is the route's RBAC verb.
func (r Route) Verb() string { return verbs[r.Method] }

// find returns the route of an allowed request.
func find(spec authorization.SubjectAccessReviewSpec, r *http.Request) (Route, error) {
	a := spec.ResourceAttributes
	if a == nil || a.Namespace == "" || !slices.Contains(versions, a.Version) {
		return Route{}, notServed(r)
	}
	known := false
	for _, route := range Routes {
		if route.Resource != a.Resource || route.Subresource != a.Subresource || route.ofNamespace() != (a.Name == "") {
			continue
		}
		if route.Method == r.Method {
			return route, nil
		}
		known = true
	}
	if known {
		return Route{}, apierrors.NewMethodNotSupported(schema.GroupResource{Group: group, Resource: strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")}, r.Method)
	}
	return Route{}, notServed(r)
}
