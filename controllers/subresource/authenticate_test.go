package subresource

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"virtstack.io/virtstack/kube/identity"
)

// Threat S7: headers count only on a connection of the front proxy itself, known by CA and name.
func TestFrontProxyAlone(t *testing.T) {
	proxyCA, otherCA := newAuthority(t), newAuthority(t)
	kube := kubefake.NewClientset(&k8sv1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data: map[string]string{
			"requestheader-client-ca-file":       proxyCA.pem(),
			"requestheader-allowed-names":        `["front-proxy-client"]`,
			"requestheader-username-headers":     `["X-Remote-User"]`,
			"requestheader-uid-headers":          `["X-Remote-Uid"]`,
			"requestheader-group-headers":        `["X-Remote-Group"]`,
			"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`,
		},
	})
	front, err := NewFrontProxy(kube)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.Authenticator = front
	var asked authorization.SubjectAccessReviewSpec
	s.Reviewer = reviewerFunc(func(spec authorization.SubjectAccessReviewSpec) (bool, string, error) {
		asked = spec
		return true, "", nil
	})
	if code := try(t, s, []tls.Certificate{proxyCA.issue(t, "front-proxy-client", identity.Peer{})}, alice); code != 401 {
		t.Errorf("before the configuration is read: HTTP %d, want 401", code)
	}
	go func() { _ = front.Start(t.Context()) }()
	eventually(t, func() bool { return front.Ready(nil) == nil })

	for name, tc := range map[string]struct {
		certs []tls.Certificate
		user  string
		want  int
	}{
		"the front proxy":             {[]tls.Certificate{proxyCA.issue(t, "front-proxy-client", identity.Peer{})}, alice, 404},
		"its CA, another name":        {[]tls.Certificate{proxyCA.issue(t, "someone", identity.Peer{})}, alice, 401},
		"its name, another CA":        {[]tls.Certificate{otherCA.issue(t, "front-proxy-client", identity.Peer{})}, alice, 401},
		"no certificate":              {nil, alice, 401},
		"the front proxy for nobody":  {[]tls.Certificate{proxyCA.issue(t, "front-proxy-client", identity.Peer{})}, "", 401},
		"a node agent of our own CA":  {[]tls.Certificate{otherCA.issue(t, "x", identity.Peer{Role: identity.RoleNodeAgent, Node: "n1"})}, alice, 401},
		"the operator of our own CA":  {[]tls.Certificate{otherCA.issue(t, "x", identity.Peer{Role: identity.RoleOperator})}, alice, 401},
		"virt-api itself, our own CA": {[]tls.Certificate{otherCA.issue(t, "x", identity.Peer{Role: identity.RoleAPI})}, alice, 401},
	} {
		asked = authorization.SubjectAccessReviewSpec{}
		if code := try(t, s, tc.certs, tc.user); code != tc.want {
			t.Errorf("%s: HTTP %d, want %d", name, code, tc.want)
		}
		if tc.want == 401 && asked.User != "" {
			t.Errorf("%s: access of %q was reviewed", name, asked.User)
		}
		if tc.want == 404 && (asked.User != alice || asked.UID != "u-1" || len(asked.Groups) != 1 || asked.Extra["scopes"][0] != "a") {
			t.Errorf("%s: reviewed %+v", name, asked)
		}
	}
}

// try asks for a VM that does not exist, over TLS with the certificates.
func try(t *testing.T, s *Server, certs []tls.Certificate, name string) int {
	t.Helper()
	srv := httptest.NewUnstartedServer(s)
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.StartTLS()
	defer srv.Close()
	c := srv.Client()
	c.Transport.(*http.Transport).TLSClientConfig.Certificates = certs
	r, err := http.NewRequestWithContext(t.Context(), "PUT", srv.URL+inShop+"virtualmachines/web/start", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-Remote-User": {name}, "X-Remote-Uid": {"u-1"}, "X-Remote-Group": {"dev"}, "X-Remote-Extra-Scopes": {"a"},
		"Authorization": {"Bearer stolen"}}
	answer, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// eventually polls until the condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("did not come to hold in 10 s")
		}
	}
}
