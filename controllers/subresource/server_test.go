package subresource

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	v1 "kubevirt.io/api/core/v1"
	instancetype "kubevirt.io/api/instancetype/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"virtstack.io/virtstack/machine/config"
)

// alice is who every request of a test is from, where it says so in a header.
const alice = "alice"

// byHeader authenticates whoever the header User names.
var byHeader = authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
	name := r.Header.Get("User")
	return &authenticator.Response{User: &user.DefaultInfo{Name: name, UID: "u1", Groups: []string{"dev"}, Extra: map[string][]string{"scopes": {"a"}}}}, name != "", nil
})

// reviewerFunc is a Reviewer.
type reviewerFunc func(authorization.SubjectAccessReviewSpec) (bool, string, error)

func (f reviewerFunc) Review(_ context.Context, spec authorization.SubjectAccessReviewSpec) (bool, string, error) {
	return f(spec)
}

func everything(authorization.SubjectAccessReviewSpec) (bool, string, error) { return true, "", nil }

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1.AddToScheme, instancetype.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// newServer returns a server on a fake cluster that holds the objects.
func newServer(t *testing.T, objects ...client.Object) *Server {
	t.Helper()
	types := scheme(t)
	// A tracker without managed fields: field owners can't be deduced from kubevirt.io types.
	tracker := clienttesting.NewObjectTracker(types, serializer.NewCodecFactory(types).UniversalDecoder())
	kube := fake.NewClientBuilder().WithScheme(types).WithObjectTracker(tracker).
		WithStatusSubresource(&v1.VirtualMachine{}, &v1.VirtualMachineInstance{}).
		WithIndex(objectPod, byNode, nodeOf).Build()
	for _, o := range objects {
		whole := o.DeepCopyObject().(client.Object) // Create drops the status
		if err := kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		whole.SetResourceVersion(o.GetResourceVersion())
		if _, without := o.(*instancetype.VirtualMachineInstancetype); without {
			continue
		}
		if err := kube.Status().Update(t.Context(), whole); err != nil {
			t.Fatal(err)
		}
	}
	return &Server{
		Kube:          kube,
		Config:        func(context.Context) (config.Config, error) { return config.From(nil), nil },
		Authenticator: byHeader,
		Reviewer:      reviewerFunc(everything),
		Agents:        Agents{Pods: kube},
		Streams:       NewStreams(t.Context(), StreamLimits{All: 4, User: 4}),
		Reach:         func(context.Context) error { return nil },
		Log:           logr.Discard(),
	}
}

func ask(s http.Handler, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("User", alice)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// statusOf decodes the Status that an error is answered with.
func statusOf(t *testing.T, w *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	s := metav1.Status{}
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Kind != "Status" || s.APIVersion != "v1" {
		t.Fatalf("HTTP %d with body %q, want a Status", w.Code, w.Body)
	}
	if int(s.Code) != w.Code {
		t.Errorf("HTTP %d with a Status of code %d", w.Code, s.Code)
	}
	return s
}

const inShop = "/apis/subresources.kubevirt.io/v1/namespaces/shop/"

func TestAnswersInOrder(t *testing.T) {
	s := newServer(t)
	denied := newServer(t)
	denied.Reviewer = reviewerFunc(func(authorization.SubjectAccessReviewSpec) (bool, string, error) { return false, "no role", nil })
	broken := newServer(t)
	broken.Reviewer = reviewerFunc(func(authorization.SubjectAccessReviewSpec) (bool, string, error) {
		return false, "", errors.New("no API server")
	})
	for name, tc := range map[string]struct {
		server       *Server
		method, path string
		code         int
		message      string
	}{
		"denied": {denied, "PUT", inShop + "virtualmachines/web/start", 403,
			`virtualmachines.subresources.kubevirt.io "web" is forbidden: User "alice" cannot update resource "virtualmachines/start" in API group "subresources.kubevirt.io" in the namespace "shop": no role`},
		"denied what is not served":   {denied, "GET", inShop + "virtualmachineinstances/web/nothing", 403, ""},
		"denied without version":      {denied, "GET", "/apis/subresources.kubevirt.io/namespaces/shop/virtualmachineinstances/web/console", 403, ""},
		"denied elsewhere":            {denied, "GET", "/metrics", 403, `forbidden: User "alice" cannot get path "/metrics": no role`},
		"denied a POST of a page":     {denied, "POST", "/apis", 403, ""},
		"no review":                   {broken, "PUT", inShop + "virtualmachines/web/start", 500, "Internal error occurred: reviewing access: no API server"},
		"not served":                  {s, "GET", inShop + "virtualmachineinstances/web/nothing", 404, "the server does not serve GET " + inShop + "virtualmachineinstances/web/nothing"},
		"unknown version":             {s, "PUT", "/apis/subresources.kubevirt.io/v2/namespaces/shop/virtualmachines/web/start", 404, ""},
		"a namespace's, of one":       {s, "PUT", inShop + "expand-vm-spec/web", 404, ""},
		"one's, of a namespace":       {s, "PUT", inShop + "virtualmachines", 404, ""},
		"a namespace's, otherwise":    {s, "POST", inShop + "expand-vm-spec", 405, ""},
		"deeper than a route":         {s, "PUT", inShop + "virtualmachines/web/start/now", 404, ""},
		"without namespace":           {s, "PUT", "/apis/subresources.kubevirt.io/v1/virtualmachines/web/start", 404, ""},
		"wrong method":                {s, "POST", inShop + "virtualmachines/web/start", 405, ""},
		"unknown method":              {s, "BREW", inShop + "virtualmachines/web/start", 405, ""},
		"encoded slash":               {s, "PUT", inShop + "virtualmachines/web%2Fstart/start", 400, `path segment "web%2Fstart": not a plain name`},
		"dots":                        {s, "PUT", inShop + "virtualmachines/../start", 400, ""},
		"empty segment":               {s, "PUT", inShop + "virtualmachines//start", 400, ""},
		"missing VM":                  {s, "PUT", inShop + "virtualmachines/web/start", 404, `virtualmachine.kubevirt.io "web" not found`},
		"missing VM, the old version": {s, "PUT", strings.Replace(inShop, "/v1/", "/v1alpha3/", 1) + "virtualmachines/web/stop", 404, `virtualmachine.kubevirt.io "web" not found`},
		"missing VMI":                 {s, "GET", inShop + "virtualmachineinstances/web/console", 404, `virtualmachineinstance.kubevirt.io "web" not found`},
		"override without a reason":   {s, "PUT", inShop + "virtualmachines/web/stop?override=true&for=2h", 400, `reason: Invalid value: "": must say why, in one line of at most 512 characters`},
		"override without an end":     {s, "PUT", inShop + "virtualmachines/web/stop?override=true&reason=x", 400, `for: Invalid value: "": must be how long the override holds, such as 30m or 2h, at most 168h0m0s`},
		"override for ever":           {s, "PUT", inShop + "virtualmachines/web/stop?override=true&for=8760h&reason=x", 400, `for: Invalid value: "8760h": must be how long the override holds, such as 30m or 2h, at most 168h0m0s`},
		"override, perhaps":           {s, "PUT", inShop + "virtualmachines/web/stop?override=perhaps", 400, `override: Invalid value: "perhaps": must be true or false`},
		"a reason for nothing":        {s, "PUT", inShop + "virtualmachines/web/start?reason=x", 400, "reason: Forbidden: it goes with override=true"},
		"override of a restart":       {s, "PUT", inShop + "virtualmachines/web/restart?override=true", 400, "override: Forbidden: only start and stop can override what Git says: leave it out"},
		"override of a pause":         {s, "PUT", inShop + "virtualmachineinstances/web/pause?override=true", 400, "override: Forbidden: only start and stop can override what Git says: leave it out"},
		"bad body":                    {s, "PUT", inShop + "virtualmachines/web/stop", 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := ""
			if name == "bad body" {
				body = `{"gracePeriod":"soon"}`
			}
			w := ask(tc.server, tc.method, tc.path, body)
			got := statusOf(t, w)
			if w.Code != tc.code || tc.message != "" && got.Message != tc.message {
				t.Errorf("HTTP %d %q, want %d %q", w.Code, got.Message, tc.code, tc.message)
			}
		})
	}
}

func TestNobodyIsUnauthorized(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{inShop + "virtualmachines/web/start", "/metrics", inShop + "virtualmachineinstances/web/console"} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPut, path, nil))
		if got := statusOf(t, w); w.Code != 401 || got.Message != "request is not authenticated" {
			t.Errorf("%s: HTTP %d %q", path, w.Code, got.Message)
		}
	}
}

func TestPagesForEveryone(t *testing.T) {
	s := newServer(t)
	for path, want := range map[string]string{
		"/": `"paths":["/apis"`, "/apis": `"kind":"APIGroupList"`,
		"/apis/subresources.kubevirt.io":            `"name":"subresource.kubevirt.io"`,
		"/apis/subresources.kubevirt.io/":           `"preferredVersion":{"groupVersion":"subresources.kubevirt.io/v1","version":"v1"}`,
		"/apis/subresources.kubevirt.io/v1":         `"groupVersion":"subresources.kubevirt.io/v1","resources":[{"name":"virtualmachineinstances/console","singularName":"","namespaced":true,"kind":"","verbs":[]}`,
		"/apis/subresources.kubevirt.io/v1alpha3":   `"groupVersion":"subresources.kubevirt.io/v1alpha3"`,
		"/apis/subresources.kubevirt.io/v1/version": `"gitVersion":"v`,
		"/apis/subresources.kubevirt.io/v1/healthz": `"ok"`,
		"/healthz":    `"ok"`,
		"/livez":      `"ok"`,
		"/openapi/v2": `"swagger":"2.0"`,
		"/openapi/v3": `"paths":{}`,
		"/openapi/v3/apis/subresources.kubevirt.io/v1": `"openapi":"3.0.0"`,
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if body, _ := io.ReadAll(w.Body); w.Code != 200 || !strings.Contains(string(body), want) || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: HTTP %d %s, want %s", path, w.Code, body, want)
		}
	}
	s.Reach = func(context.Context) error { return errors.New("no API server") }
	if w := ask(s, "GET", "/healthz", ""); w.Code != 500 {
		t.Errorf("/healthz without an API server: HTTP %d", w.Code)
	}
	if w := ask(s, "GET", "/livez", ""); w.Code != 200 {
		t.Errorf("/livez without an API server: HTTP %d: consoles would be cut", w.Code)
	}
}
