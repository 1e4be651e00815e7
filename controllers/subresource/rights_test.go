package subresource

import (
	"fmt"
	"strings"
	"testing"

	authorization "k8s.io/api/authorization/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// rights are who may do what in the namespace of their binding, with the letters of the users: viewer, editor, admin.
// Elsewhere nobody may do anything; the evictor and nobody may do nothing here either.
var rights = map[string]string{
	"get virtualmachineinstances/console":             "ea",
	"get virtualmachineinstances/vnc":                 "ea",
	"get virtualmachineinstances/vnc/screenshot":      "a",
	"get virtualmachineinstances/portforward":         "ea",
	"get virtualmachineinstances/guestosinfo":         "vea",
	"get virtualmachineinstances/userlist":            "vea",
	"get virtualmachineinstances/filesystemlist":      "vea",
	"update virtualmachineinstances/pause":            "ea",
	"update virtualmachineinstances/unpause":          "ea",
	"update virtualmachineinstances/addvolume":        "ea",
	"get virtualmachines/expand-spec":                 "vea",
	"update virtualmachines/start":                    "ea",
	"update virtualmachines/stop":                     "ea",
	"update virtualmachines/restart":                  "ea",
	"update virtualmachines/addvolume":                "ea",
	"update virtualmachines/memorydump":               "ea",
	"update virtualmachines/removememorydump":         "ea",
	"update virtualmachines/migrate":                  "",
	"update virtualmachines/evacuate/cancel":          "ea",
	"update virtualmachineinstances/sev/setupsession": "ea",
	"get virtualmachineinstances/sev/fetchcertchain":  "vea",
	"update virtualmachineinstances/console":          "",
	"get virtualmachines/start":                       "",
}

var users = []string{"viewer", "editor", "admin", "evictor", "nobody"}

// Case 45: what a review says a user may, the call may, and nothing else: neither by another namespace nor by a path
// without a version.
func TestAReviewAndTheCallAgree(t *testing.T) {
	f := aggregated(t)
	f.cast(t)
	for _, user := range users {
		kube := f.as(t, user)
		t.Run(user, func(t *testing.T) {
			for right, may := range rights {
				verb, resource, _ := strings.Cut(right, " ")
				bound := user != "evictor" && user != "nobody"
				for _, ns := range []string{"shop", "default"} {
					want := bound && ns == "shop" && strings.Contains(may, user[:1])
					said, called := reviewOf(t, kube, ns, verb, resource), call(t, kube, ns, verb, resource)
					if said != want || called != want {
						t.Errorf("%s in %s: the review says %v, the call %v; want %v", right, ns, said, called, want)
					}
				}
			}
			err := kube.Discovery().RESTClient().Get().AbsPath(base, "namespaces", "shop", "virtualmachineinstances", "absent", "console").Do(t.Context()).Error()
			if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				t.Errorf("a path without a version: %v", err)
			}
		})
	}
}

// cast binds the users to their roles in namespace shop.
func (f *front) cast(t *testing.T) {
	t.Helper()
	install(t, f.Env, "roles/view.yaml", "roles/admin.yaml")
	evict := &rbac.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "evict-only"},
		Rules: []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}}}}
	if err := f.Client.Create(t.Context(), evict); err != nil {
		t.Fatal(err)
	}
	for user, role := range map[string]rbac.RoleRef{
		"viewer": {Kind: "ClusterRole", Name: "kubevirt.io:view"}, "editor": {Kind: "ClusterRole", Name: "kubevirt.io:edit"},
		"admin": {Kind: "ClusterRole", Name: "kubevirt.io:admin"}, "evictor": {Kind: "Role", Name: "evict-only"},
	} {
		role.APIGroup = rbac.GroupName
		b := &rbac.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: user}, RoleRef: role,
			Subjects: []rbac.Subject{{Kind: rbac.UserKind, APIGroup: rbac.GroupName, Name: user}}}
		if err := f.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	for user, right := range map[string]string{"viewer": "get virtualmachines/expand-spec", "editor": "update virtualmachines/start", "admin": "update virtualmachines/start"} {
		kube := f.as(t, user)
		verb, resource, _ := strings.Cut(right, " ")
		eventually(t, func() bool { return call(t, kube, "shop", verb, resource) })
	}
}

func (f *front) as(t *testing.T, user string) *kubernetes.Clientset {
	t.Helper()
	cfg := rest.CopyConfig(f.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	cfg.QPS, cfg.Burst = 1000, 1000
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

// reviewOf asks for the user's own rights.
func reviewOf(t *testing.T, kube *kubernetes.Clientset, ns, verb, resource string) bool {
	t.Helper()
	of, sub, _ := strings.Cut(resource, "/")
	r := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorization.ResourceAttributes{
		Group: group, Version: "v1", Namespace: ns, Verb: verb, Resource: of, Subresource: sub, Name: "absent"}}}
	r, err := kube.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), r, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Status.Allowed
}

// call makes the call, on a machine that isn't there, and tells whether it was let through.
func call(t *testing.T, kube *kubernetes.Clientset, ns, verb, resource string) bool {
	t.Helper()
	of, sub, _ := strings.Cut(resource, "/")
	request := kube.Discovery().RESTClient().Get()
	if verb == "update" {
		request = kube.Discovery().RESTClient().Put()
	}
	err := request.AbsPath(fmt.Sprintf("%s/v1/namespaces/%s/%s/absent/%s", base, ns, of, sub)).Do(t.Context()).Error()
	if err == nil || apierrors.IsUnauthorized(err) {
		return false // nothing of the kind is there to succeed; a front proxy that isn't known yet
	}
	return !apierrors.IsForbidden(err)
}
