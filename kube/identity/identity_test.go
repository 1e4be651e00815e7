package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"

	"virtstack.io/virtstack/kube/identity"
)

// authority signs for tests, and is the Source of who it last signed for.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	a := authority{t: t, key: newKey(t)}
	a.cert = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, &a.key.PublicKey, nil)
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a authority) sign(template *x509.Certificate, key *ecdsa.PublicKey, parent *x509.Certificate) *x509.Certificate {
	a.t.Helper()
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert
}

// end is one end of a link: its own certificate and whom it trusts.
type end struct {
	cert tls.Certificate
	ca   authority
}

func (e end) Certificate() (*tls.Certificate, error) { return &e.cert, nil }
func (e end) Roots() (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	pool.AddCert(e.ca.cert)
	return pool, nil
}

func (a authority) issue(trusts authority, names ...string) end {
	key := newKey(a.t)
	template := &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	for _, n := range names {
		u, err := url.Parse(n)
		if err != nil {
			a.t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	leaf := a.sign(template, &key.PublicKey, a.cert)
	return end{tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}, trusts}
}

func onlyAPI(p identity.Peer) error {
	if p != (identity.Peer{Role: identity.RoleAPI}) {
		return identity.ErrPeer
	}
	return nil
}

// link returns the two ends of a connection that buffers, so that neither has to wait for the other's last words.
func link(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if b, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if a, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []net.Conn{a, b} {
		t.Cleanup(func() { c.Close() })
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// meet returns what the server and the client make of each other.
func meet(t *testing.T, server, client end, want identity.Peer) (serverErr, clientErr error) {
	t.Helper()
	a, b := link(t)
	cfg, err := identity.Client(client, want)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		s := tls.Server(a, identity.Server(server, onlyAPI))
		err := s.HandshakeContext(t.Context())
		if err == nil {
			_, err = s.Write([]byte("x"))
		}
		a.Close()
		done <- err
	}()
	c := tls.Client(b, cfg)
	clientErr = c.HandshakeContext(t.Context())
	if clientErr == nil {
		_, clientErr = io.ReadFull(c, make([]byte, 1))
	}
	b.Close()
	return <-done, clientErr
}

func TestLinksCheckRoleAndNodeAtBothEnds(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	node1 := identity.Peer{Role: identity.RoleNodeAgent, Node: "node-1"}
	for name, tc := range map[string]struct {
		server, client end
		ok             bool
	}{
		"virt-api and the node's agent": {ours.issue(ours, "virtstack://virt-handler/node-1"), ours.issue(ours, "virtstack://virt-api"), true},
		"another node's agent serves":   {ours.issue(ours, "virtstack://virt-handler/node-2"), ours.issue(ours, "virtstack://virt-api"), false},
		"an agent calls an agent":       {ours.issue(ours, "virtstack://virt-handler/node-1"), ours.issue(ours, "virtstack://virt-handler/node-2"), false},
		"a client of another authority": {ours.issue(ours, "virtstack://virt-handler/node-1"), theirs.issue(ours, "virtstack://virt-api"), false},
		"a server of another authority": {theirs.issue(ours, "virtstack://virt-handler/node-1"), ours.issue(ours, "virtstack://virt-api"), false},
		"a client without a name":       {ours.issue(ours, "virtstack://virt-handler/node-1"), ours.issue(ours), false},
		"a client with two names":       {ours.issue(ours, "virtstack://virt-handler/node-1"), ours.issue(ours, "virtstack://virt-api", "virtstack://virt-handler/node-1"), false},
		"a client's name with a user":   {ours.issue(ours, "virtstack://virt-handler/node-1"), ours.issue(ours, "virtstack://x@virt-api"), false},
	} {
		t.Run(name, func(t *testing.T) {
			serverErr, clientErr := meet(t, tc.server, tc.client, node1)
			if ok := serverErr == nil && clientErr == nil; ok != tc.ok {
				t.Errorf("server says %v, client says %v; want success: %v", serverErr, clientErr, tc.ok)
			}
		})
	}
}

func TestAPeerIsNamed(t *testing.T) {
	a := newAuthority(t)
	cert := a.issue(a, "virtstack://virt-handler/node-1").cert
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if p, err := identity.Of(leaf); err != nil || p != (identity.Peer{Role: "virt-handler", Node: "node-1"}) {
		t.Errorf("got %v, %v", p, err)
	}
	leaf.URIs = nil
	if _, err := identity.Of(leaf); !errors.Is(err, identity.ErrPeer) {
		t.Errorf("without a name: got %v", err)
	}
}
