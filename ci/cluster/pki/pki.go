// Package pki makes the dev cluster's keys, certificates and kubeconfigs. What is already there stays, so that a
// kubeconfig handed out before keeps working.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Valid is how long a certificate lives: longer than any checkout.
const Valid = 10 * 365 * 24 * time.Hour

// Store is a directory of NAME.key and NAME.crt, PEM.
type Store string

// Key and Cert are the paths of a pair.
func (s Store) Key(name string) string  { return filepath.Join(string(s), name+".key") }
func (s Store) Cert(name string) string { return filepath.Join(string(s), name+".crt") }

// Subject is what a certificate says about its owner.
type Subject struct {
	Name   string   // common name: the user
	Groups []string // organizations
	DNS    []string
	IPs    []string
}

// pair is a certificate with its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Authority makes the self-signed certificate name unless it is there.
func (s Store) Authority(name string, subject Subject, now time.Time) error {
	if _, err := s.load(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	tmpl := template(subject, now)
	tmpl.IsCA, tmpl.BasicConstraintsValid = true, true
	tmpl.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	tmpl.ExtKeyUsage = nil
	return s.issue(name, tmpl, nil)
}

// Issue makes the certificate name, good for servers and clients, signed by the authority ca, unless it is there.
func (s Store) Issue(name, ca string, subject Subject, now time.Time) error {
	if _, err := s.load(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	signer, err := s.load(ca)
	if err != nil {
		return fmt.Errorf("reading authority %s: %w", ca, err)
	}
	return s.issue(name, template(subject, now), &signer)
}

func template(s Subject, now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		Subject:     pkix.Name{CommonName: s.Name, Organization: s.Groups},
		DNSNames:    s.DNS,
		NotBefore:   now.Add(-time.Hour),
		NotAfter:    now.Add(Valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, ip := range s.IPs {
		t.IPAddresses = append(t.IPAddresses, net.ParseIP(ip))
	}
	return t
}

// issue signs tmpl with the authority by, or with its own new key where there is none.
func (s Store) issue(name string, tmpl *x509.Certificate, by *pair) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if by == nil {
		by = &pair{tmpl, key}
	}
	if tmpl.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, by.cert, key.Public(), by.key)
	if err != nil {
		return fmt.Errorf("signing certificate %s: %w", name, err)
	}
	if err := s.writeKey(name, key); err != nil {
		return err
	}
	return writePEM(s.Cert(name), "CERTIFICATE", der, 0o644)
}

// SigningKey makes a key pair without a certificate, NAME.key and NAME.pub, unless it is there.
func (s Store) SigningKey(name string) error {
	pub := filepath.Join(string(s), name+".pub")
	if _, err := os.Stat(pub); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := s.writeKey(name, key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return writePEM(pub, "PUBLIC KEY", der, 0o644)
}

func (s Store) writeKey(name string, key crypto.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(s.Key(name), "PRIVATE KEY", der, 0o600)
}

// writePEM replaces the file in one step: a half-written key would never be made again.
func writePEM(file, kind string, der []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// load reads a pair; the certificate is written last, so where it is missing the pair is.
func (s Store) load(name string) (pair, error) {
	cert, err := os.ReadFile(s.Cert(name))
	if err != nil {
		return pair{}, err
	}
	key, err := os.ReadFile(s.Key(name))
	if err != nil {
		return pair{}, fmt.Errorf("certificate %s without its key: %w", name, err)
	}
	return parse(name, cert, key)
}

func parse(name string, certPEM, keyPEM []byte) (pair, error) {
	cb, _ := pem.Decode(certPEM)
	kb, _ := pem.Decode(keyPEM)
	if cb == nil || kb == nil {
		return pair{}, fmt.Errorf("certificate %s: not PEM", name)
	}
	cert, err := x509.ParseCertificate(cb.Bytes)
	if err != nil {
		return pair{}, fmt.Errorf("certificate %s: %w", name, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(kb.Bytes)
	if err != nil {
		return pair{}, fmt.Errorf("key %s: %w", name, err)
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return pair{}, fmt.Errorf("key %s: a %T, not an elliptic curve's", name, key)
	}
	return pair{cert, ec}, nil
}
