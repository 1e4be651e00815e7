package stream

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"virtstack.io/virtstack/kube/identity"
)

// authority signs certificates for any peer.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// source is a peer's identity, signed by one authority and trusting another.
type source struct {
	cert  *tls.Certificate
	roots *x509.CertPool
}

func (s source) Certificate() (*tls.Certificate, error) { return s.cert, nil }
func (s source) Roots() (*x509.CertPool, error)         { return s.roots, nil }

func (a authority) source(t *testing.T, p identity.Peer, trusts authority) source {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), URIs: []*url.URL{p.URI()},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(trusts.cert)
	return source{&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots}
}

// S9: only virt-api is spoken to, by role, whoever has signed for the others.
func TestOnlyVirtAPIIsServed(t *testing.T) {
	ours, foreign := newAuthority(t), newAuthority(t)
	agent := identity.Peer{Role: identity.RoleNodeAgent, Node: here}
	s, _, _ := serve(t, nil)
	s.Identity = ours.source(t, agent, ours)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	api := identity.Peer{Role: identity.RoleAPI}
	for name, tc := range map[string]struct {
		caller source
		want   bool
	}{
		"virt-api":                         {ours.source(t, api, ours), true},
		"another node's agent":             {ours.source(t, identity.Peer{Role: identity.RoleNodeAgent, Node: "node-b"}, ours), false},
		"the operator":                     {ours.source(t, identity.Peer{Role: identity.RoleOperator}, ours), false},
		"virt-api of another cluster":      {foreign.source(t, api, ours), false},
		"virt-api with the name of a node": {ours.source(t, identity.Peer{Role: identity.RoleAPI, Node: here}, ours), false},
	} {
		config, err := identity.Client(tc.caller, agent)
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		resp, err := c.Get("https://" + l.Addr().String() + "/")
		if err == nil {
			resp.Body.Close()
		}
		if (err == nil) != tc.want {
			t.Errorf("%s: served is %v, want %v: %v", name, err == nil, tc.want, err)
		}
	}
}
