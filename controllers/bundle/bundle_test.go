package bundle

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	rbacv1 "k8s.io/api/rbac/v1"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/source/sourcetest"
	"virtstack.io/virtstack/kube/apply"
	"virtstack.io/virtstack/kube/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// tenant is one namespace with an account, a repository and a Bundle that acts as the account.
type tenant struct {
	*kubetest.Env
	t          *testing.T
	namespace  string
	repo       *sourcetest.Repository
	bundle     *v1alpha1.Bundle
	config     *rest.Config
	controller *Controller
	writes     *atomic.Int64
	now        time.Time
}

func start(t *testing.T) *tenant {
	t.Helper()
	e := kubetest.Start(t)
	x := &tenant{Env: e, t: t, namespace: e.Namespace(t), repo: sourcetest.Serve(t), writes: &atomic.Int64{}, now: time.Now()}
	install(t, e)
	x.grant("configmaps", "services", "secrets", "persistentvolumeclaims")
	x.config = account(t, e)
	x.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, x.writes} })
	x.controller = x.process(nil)
	x.bundle = &v1alpha1.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: "apps"},
		Spec: v1alpha1.BundleSpec{
			Source: v1alpha1.BundleSource{Git: &v1alpha1.GitSource{URL: x.repo.URL, Ref: v1alpha1.GitRef{Branch: "main"}}},
			Prune:  &v1alpha1.BundlePrune{Enabled: true}, ServiceAccountName: "deployer",
		},
	}
	return x
}

// process returns a controller as it is after a start, whose requests go through wire; nil: as they are.
func (x *tenant) process(wire func(http.RoundTripper) http.RoundTripper) *Controller {
	x.t.Helper()
	cfg := rest.CopyConfig(x.config)
	if wire != nil {
		cfg.Wrap(wire)
	}
	options := client.Options{Scheme: x.Client.Scheme(), Mapper: x.Client.RESTMapper()}
	own, err := client.New(cfg, options)
	if err != nil {
		x.t.Fatal(err)
	}
	return &Controller{
		client: own, live: own, status: apply.Applier{Client: own, Manager: fieldManager},
		events: events.NewFakeRecorder(1000), builds: newBuilds(), healthy: newBuilds(), as: impersonating(cfg, options),
	}
}

// install applies the manifests of the operator: the real rights of virt-bundles.
func install(t *testing.T, e *kubetest.Env) {
	t.Helper()
	objects, err := build.Objects(t.Context(), os.DirFS("../../bundles/operator"), "", build.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := e.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o.Unstructured), client.ForceOwnership, client.FieldOwner("test")); err != nil {
			t.Fatal(err)
		}
	}
}

// account returns a configuration with a token of virt-bundles' own account.
func account(t *testing.T, e *kubetest.Env) *rest.Config {
	t.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kubevirt", Name: "kubevirt-bundles"}}
	token := &authenticationv1.TokenRequest{}
	if err := e.Client.SubResource("token").Create(t.Context(), sa, token); err != nil {
		t.Fatal(err)
	}
	cfg := rest.AnonymousClientConfig(e.Config)
	cfg.BearerToken = token.Status.Token
	cfg.QPS, cfg.Burst = -1, -1
	return cfg
}

// counter counts requests that write.
type counter struct {
	next http.RoundTripper
	n    *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && !strings.Contains(r.URL.RawQuery, "dryRun") {
		c.n.Add(1)
	}
	return c.next.RoundTrip(r)
}

// grant lets the tenant's account do all with these kinds in its namespace.
func (x *tenant) grant(resources ...string) {
	x.t.Helper()
	name := "deployer-" + resources[0]
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: x.namespace, Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"", "kubevirt.io"}, Resources: resources, Verbs: []string{"*"}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: x.namespace, Name: "deployer"}},
	}
	x.create(role)
	x.create(binding)
}

func (x *tenant) create(o client.Object) {
	x.t.Helper()
	if err := x.Client.Create(x.t.Context(), o); err != nil {
		x.t.Fatal(err)
	}
}

// settle runs rounds, each when the one before asked for it, until one asks for none within 4 seconds.
func (x *tenant) settle() *v1alpha1.Bundle {
	x.t.Helper()
	key := client.ObjectKeyFromObject(x.bundle)
	for range 30 {
		recheck, err := x.controller.Round(x.t.Context(), key, x.now)
		if err != nil {
			x.t.Fatal(err)
		}
		if recheck.IsZero() || recheck.Sub(x.now) > 4*time.Second {
			break
		}
		x.now = recheck
	}
	b := &v1alpha1.Bundle{}
	if err := client.IgnoreNotFound(x.Client.Get(x.t.Context(), key, b)); err != nil {
		x.t.Fatal(err)
	}
	return b
}

// condition returns the status, reason and message of a condition.
func condition(b *v1alpha1.Bundle, kind string) (status metav1.ConditionStatus, reason, message string) {
	for _, c := range b.Status.Conditions {
		if c.Type == kind {
			return c.Status, c.Reason, c.Message
		}
	}
	return "", "", ""
}

func (x *tenant) ready(b *v1alpha1.Bundle, revision string) {
	x.t.Helper()
	if status, reason, message := condition(b, "Ready"); status != metav1.ConditionTrue {
		x.t.Fatalf("Ready is %s %s: %s", status, reason, message)
	}
	if b.Status.LastAppliedRevision != revision || b.Status.ObservedGeneration != b.Generation {
		x.t.Fatalf("applied is %q of generation %d, want %q of %d", b.Status.LastAppliedRevision, b.Status.ObservedGeneration, revision, b.Generation)
	}
}

// failed checks that Ready is False, with a message that has all of these.
func (x *tenant) failed(b *v1alpha1.Bundle, reason string, parts ...string) {
	x.t.Helper()
	status, got, message := condition(b, "Ready")
	if status != metav1.ConditionFalse || got != reason {
		x.t.Fatalf("Ready is %s %s: %s, want False %s", status, got, message, reason)
	}
	for _, p := range parts {
		if !strings.Contains(message, p) {
			x.t.Errorf("the message does not name %q: %s", p, message)
		}
	}
}

func (x *tenant) exists(o client.Object, name string) bool {
	x.t.Helper()
	err := x.Client.Get(context.Background(), client.ObjectKey{Namespace: x.namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		x.t.Fatal(err)
	}
	return err == nil && o.GetDeletionTimestamp() == nil
}

func settings(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {value: " + value + "}\n"
}

// admin makes the account "admin" one.
func (x *tenant) admin() {
	x.create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: x.namespace + "-admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: x.namespace, Name: "admin"}},
	})
}
