package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
)

// Files is a Source that reads a mounted Secret and ConfigMap anew at each handshake, so that a rotation needs no
// restart.
type Files struct {
	// CertDir holds tls.crt and tls.key, CAFile the bundle of trusted roots, all PEM.
	CertDir, CAFile string
}

// Certificate reads tls.crt and tls.key.
func (f Files) Certificate() (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(filepath.Join(f.CertDir, "tls.crt"), filepath.Join(f.CertDir, "tls.key"))
	return &c, err
}

// Roots reads the bundle.
func (f Files) Roots() (*x509.CertPool, error) { return RootsFile(f.CAFile) }

// RootsFile reads a PEM bundle; a file without a certificate is an error.
func RootsFile(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	return pool, nil
}
