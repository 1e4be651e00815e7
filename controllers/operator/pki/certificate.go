package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/url"
	"slices"
	"time"

	"virtstack.io/virtstack/kube/identity"
)

// Identity is what a certificate says of its holder.
type Identity struct {
	Peer identity.Peer
	DNS  []string
}

// Renew returns the pair to use now for id: the given one while it is valid, fits and is not due, else a new one.
func Renew(now time.Time, old Pair, a Authority, id Identity, p Policy) (Pair, error) {
	if c := parse(old); c != nil && fits(c, id) && trusted(c, a, now) && now.Before(due(c, p)) {
		return old, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of %s: %w", id.Peer, err)
	}
	der, err := sign(now, a, request{id.Peer.URI(), id.DNS, &key.PublicKey}, p.Server)
	if err != nil {
		return Pair{}, err
	}
	return pair(der, key)
}

// RenewAt returns when Renew will have something to do, zero for a pair that can't be read.
func RenewAt(p Pair, policy Policy) time.Time {
	if c := parse(p); c != nil {
		return due(c, policy)
	}
	return time.Time{}
}

// due waits for a fifth of the life that a certificate really has: one that ends early, with its authority, would else
// be due again as soon as it is made.
func due(c *x509.Certificate, p Policy) time.Time {
	life := c.NotAfter.Sub(c.NotBefore.Add(skew))
	return c.NotAfter.Add(-min(p.ServerBefore, life*4/5))
}

// Sign returns a PEM certificate for a public key whose holder has proved to be peer. It lives for at most life.
func Sign(now time.Time, a Authority, peer identity.Peer, public crypto.PublicKey, life time.Duration) ([]byte, error) {
	der, err := sign(now, a, request{peer.URI(), nil, public}, life)
	if err != nil {
		return nil, err
	}
	return encode("CERTIFICATE", der), nil
}

func fits(c *x509.Certificate, id Identity) bool {
	return len(c.URIs) == 1 && c.URIs[0].String() == id.Peer.URI().String() && slices.Equal(c.DNSNames, id.DNS)
}

func trusted(c *x509.Certificate, a Authority, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Bundle)
	_, err := c.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

type request struct {
	uri    *url.URL
	dns    []string
	public crypto.PublicKey
}

// sign makes a certificate for both ends of a link that doesn't outlive the authority.
func sign(now time.Time, a Authority, r request, life time.Duration) ([]byte, error) {
	ca := parse(a.Current)
	if ca == nil {
		return nil, fmt.Errorf("signing for %s: there is no authority", r.uri)
	}
	key, err := a.Current.key()
	if err != nil {
		return nil, err
	}
	serial, err := serialNumber()
	if err != nil {
		return nil, err
	}
	end := now.Add(life)
	if end.After(ca.NotAfter) {
		end = ca.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: r.uri.Host},
		NotBefore:    now.Add(-skew),
		NotAfter:     end,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		URIs:         []*url.URL{r.uri},
		DNSNames:     r.dns,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, r.public, key)
	if err != nil {
		return nil, fmt.Errorf("signing for %s: %w", r.uri, err)
	}
	return der, nil
}
