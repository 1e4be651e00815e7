package pki_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"virtstack.io/virtstack/controllers/operator/pki"
	"virtstack.io/virtstack/kube/identity"
)

var (
	start  = time.Date(2026, 12, 2, 8, 0, 0, 0, time.UTC)
	policy = pki.Policy{CA: 168 * time.Hour, CABefore: 34 * time.Hour, Server: 24 * time.Hour, ServerBefore: 5 * time.Hour}
	api    = pki.Identity{Peer: identity.Peer{Role: identity.RoleAPI}, DNS: []string{"virt-api.kubevirt.svc"}}
)

func rotate(t *testing.T, now time.Time, a pki.Authority) pki.Authority {
	t.Helper()
	a, err := pki.Rotate(now, a, policy)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func renew(t *testing.T, now time.Time, old pki.Pair, a pki.Authority) pki.Pair {
	t.Helper()
	p, err := pki.Renew(now, old, a, api, policy)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func certificate(t *testing.T, p pki.Pair) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func trusted(p *x509.Certificate, bundle []byte, now time.Time, name string) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := p.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, DNSName: name})
	return err
}

func TestCertificateIsTrustedAndSaysWhoItIs(t *testing.T) {
	a := rotate(t, start, pki.Authority{})
	c := certificate(t, renew(t, start, pki.Pair{}, a))
	if err := trusted(c, a.Bundle, start, "virt-api.kubevirt.svc"); err != nil {
		t.Error(err)
	}
	if peer, err := identity.Of(c); err != nil || peer != api.Peer {
		t.Errorf("got %v, %v", peer, err)
	}
	if trusted(c, a.Bundle, start.Add(25*time.Hour), "") == nil {
		t.Error("still trusted after its end")
	}
}

func TestNothingChangesBeforeItIsDue(t *testing.T) {
	a := rotate(t, start, pki.Authority{})
	p := renew(t, start, pki.Pair{}, a)
	later := start.Add(18 * time.Hour)
	if b := rotate(t, later, a); !bytes.Equal(b.Bundle, a.Bundle) || !bytes.Equal(b.Current.Key, a.Current.Key) {
		t.Error("the authority changed")
	}
	if q := renew(t, later, p, a); !bytes.Equal(q.Cert, p.Cert) {
		t.Error("the certificate changed")
	}
	if q := renew(t, start.Add(20*time.Hour), p, a); bytes.Equal(q.Cert, p.Cert) {
		t.Error("the certificate was not renewed in its last fifth")
	}
	other := api
	other.DNS = []string{"elsewhere.kubevirt.svc"}
	if q, err := pki.Renew(start, p, a, other, policy); err != nil || bytes.Equal(q.Cert, p.Cert) {
		t.Errorf("a certificate for other names was kept: %v", err)
	}
}

// For a year, looked at every hour: whatever was handed out is trusted by everyone until its end, also by those who
// saw the bundle as late as Overlap allows.
func TestRotationNeverBreaksTrust(t *testing.T) {
	a := rotate(t, start, pki.Authority{})
	p := renew(t, start, pki.Pair{}, a)
	authorities := map[string]bool{}
	stale := a.Bundle
	for now := start; now.Before(start.Add(365 * 24 * time.Hour)); now = now.Add(time.Hour) {
		late := a.Bundle // what a Pod still has mounted when the next step is taken
		a = rotate(t, now, a)
		p = renew(t, now, p, a)
		c := certificate(t, p)
		if err := trusted(c, a.Bundle, now, ""); err != nil {
			t.Fatalf("%v: %v", now, err)
		}
		if err := trusted(c, late, now, ""); err != nil {
			t.Fatalf("%v: with the bundle of an hour ago: %v", now, err)
		}
		authorities[string(a.Current.Cert)] = true
		if n := bytes.Count(a.Bundle, []byte("BEGIN")); n > 3 {
			t.Fatalf("%v: the bundle has grown to %d", now, n)
		}
	}
	if len(authorities) < 52 {
		t.Errorf("a year saw %d authorities", len(authorities))
	}
	if bytes.Equal(stale, a.Bundle) {
		t.Error("the bundle never changed")
	}
}

// An authority that ends before the certificate is due would make each new one due at once.
func TestNoCertificateIsDueWhenItIsMade(t *testing.T) {
	a := rotate(t, start, pki.Authority{})
	now, made, p := start.Add(165*time.Hour), 0, pki.Pair{}
	for end := start.Add(167 * time.Hour); now.Before(end); now = pki.RenewAt(p, policy) {
		p = renew(t, now, p, a)
		made++
	}
	if made > 20 {
		t.Errorf("%d certificates were made in the two hours before the last", made)
	}
}

func TestDamagedSecretIsReplaced(t *testing.T) {
	a := rotate(t, start, pki.Authority{})
	for name, broken := range map[string]pki.Pair{
		"empty": {}, "no PEM": {Cert: []byte("x"), Key: []byte("y")}, "another's key": {Cert: a.Current.Cert, Key: rotate(t, start, pki.Authority{}).Current.Key},
	} {
		t.Run(name, func(t *testing.T) {
			b := rotate(t, start, pki.Authority{Current: broken, Bundle: a.Bundle})
			c := certificate(t, renew(t, start, pki.Pair{}, b))
			if err := trusted(c, b.Bundle, start, ""); err != nil {
				t.Error(err)
			}
			if !bytes.Contains(b.Bundle, bytes.TrimSpace(a.Current.Cert)) {
				t.Error("what the lost authority has signed is no longer trusted")
			}
		})
	}
}

func TestSignedCertificateDoesNotOutliveItsAuthority(t *testing.T) {
	a := rotate(t, start, pki.Authority{})
	key := certificate(t, renew(t, start, pki.Pair{}, a)).PublicKey
	now := start.Add(167 * time.Hour)
	data, err := pki.Sign(now, a, identity.Peer{Role: identity.RoleNodeAgent, Node: "n"}, key, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.NotAfter.Sub(start); got != 168*time.Hour {
		t.Errorf("it ends %v after the authority was made, want 168h", got)
	}
	if peer, err := identity.Of(c); err != nil || peer.Node != "n" {
		t.Errorf("got %v, %v", peer, err)
	}
}
