// Package pki makes the certificates of an install: a certificate authority that is replaced with an overlap, and the
// certificates it signs. State is the data of a Secret and a ConfigMap; the time is the caller's.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Overlap is how long a new authority is trusted before it signs: the time that a mounted bundle takes to arrive
// everywhere, with plenty to spare.
const Overlap = 10 * time.Minute

// skew is how far clocks of nodes may be behind.
const skew = 5 * time.Minute

// Policy is how long certificates live and how long before their end they are replaced.
type Policy struct {
	CA, CABefore         time.Duration
	Server, ServerBefore time.Duration
}

// Pair is a certificate and its key, PEM as in a Secret of type kubernetes.io/tls.
type Pair struct{ Cert, Key []byte }

// Authority is what is kept of our certificate authority.
type Authority struct {
	// Current signs. Next, if it is there, is trusted already and signs after Overlap.
	Current, Next Pair
	// Bundle is every authority that may have signed a certificate that is still valid, PEM, newest last.
	Bundle []byte
}

// Rotate returns the authority as it has to be now; the same when nothing has to change. A pair that can't be read
// counts as absent.
func Rotate(now time.Time, a Authority, p Policy) (Authority, error) {
	current, next := parse(a.Current), parse(a.Next)
	switch {
	case !usable(current, now) && usable(next, now):
		a.Current, a.Next = a.Next, Pair{}
	case !usable(current, now):
		fresh, err := newCA(now, p.CA)
		if err != nil {
			return a, err
		}
		a.Current, a.Next = fresh, Pair{}
	case next != nil && now.After(next.NotBefore.Add(skew+Overlap)):
		a.Current, a.Next = a.Next, Pair{}
	case next == nil && now.After(current.NotAfter.Add(-p.CABefore)):
		fresh, err := newCA(now, p.CA)
		if err != nil {
			return a, err
		}
		a.Next = fresh
	}
	a.Bundle = bundle(now, a)
	return a, nil
}

// Due returns when Rotate will have something to do.
func Due(a Authority, p Policy) time.Time {
	if next := parse(a.Next); next != nil {
		return next.NotBefore.Add(skew + Overlap)
	}
	if current := parse(a.Current); current != nil {
		return current.NotAfter.Add(-p.CABefore)
	}
	return time.Time{}
}

// bundle drops authorities that have ended and adds the two that are in use.
func bundle(now time.Time, a Authority) []byte {
	var out bytes.Buffer
	seen := map[string]bool{}
	for _, data := range [][]byte{a.Bundle, a.Current.Cert, a.Next.Cert} {
		for _, c := range certificates(data) {
			if now.Before(c.NotAfter) && !seen[string(c.Raw)] {
				seen[string(c.Raw)] = true
				out.Write(encode("CERTIFICATE", c.Raw))
			}
		}
	}
	return out.Bytes()
}

func certificates(data []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// parse returns the certificate of a pair whose key fits it, or nil.
func parse(p Pair) *x509.Certificate {
	all := certificates(p.Cert)
	if len(all) == 0 {
		return nil
	}
	key, err := p.key()
	if err != nil || !key.PublicKey.Equal(all[0].PublicKey) {
		return nil
	}
	return all[0]
}

func (p Pair) key() (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(p.Key)
	if block == nil {
		return nil, errors.New("no PEM key")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func usable(c *x509.Certificate, now time.Time) bool {
	return c != nil && c.IsCA && now.After(c.NotBefore) && now.Before(c.NotAfter)
}

func newCA(now time.Time, life time.Duration) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making a CA key: %w", err)
	}
	serial, err := serialNumber()
	if err != nil {
		return Pair{}, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: fmt.Sprintf("kubevirt-ca@%d", now.Unix())},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(life),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing a CA: %w", err)
	}
	return pair(der, key)
}

func pair(der []byte, key *ecdsa.PrivateKey) (Pair, error) {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: encode("CERTIFICATE", der), Key: encode("EC PRIVATE KEY", raw)}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func serialNumber() (*big.Int, error) {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return n, nil
}
