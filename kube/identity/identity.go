// Package identity is who our components are to each other: certificates whose one URI SAN carries the role and, for
// node agents, the node, and TLS configurations that check it at both ends.
package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Roles of our components.
const (
	RoleAPI       = "virt-api"
	RoleNodeAgent = "virt-handler"
	RoleOperator  = "virt-operator"
)

// ErrPeer is returned for a peer whose certificate is valid but is not who was expected.
var ErrPeer = errors.New("unexpected peer")

// Peer is one end of a link. Node is set for node agents only.
type Peer struct{ Role, Node string }

// URI returns the SAN of the peer's certificates: virtstack://role or virtstack://role/node.
func (p Peer) URI() *url.URL {
	u := &url.URL{Scheme: "virtstack", Host: p.Role}
	if p.Node != "" {
		u.Path = "/" + p.Node
	}
	return u
}

func (p Peer) String() string { return p.URI().String() }

// Of returns whose certificate it is; an error wraps ErrPeer where it carries no or more than one identity of ours, or
// one that isn't spelled as URI does: with a user, a query, a longer path.
func Of(cert *x509.Certificate) (Peer, error) {
	var found []Peer
	for _, u := range cert.URIs {
		if u.Scheme == "virtstack" {
			p := Peer{Role: u.Host, Node: strings.TrimPrefix(u.Path, "/")}
			if u.String() != p.String() || strings.Contains(p.Node, "/") {
				return Peer{}, fmt.Errorf("%w: certificate %q has the malformed name %s", ErrPeer, cert.Subject, u)
			}
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return Peer{}, fmt.Errorf("%w: certificate %q has %d virtstack:// names, want 1", ErrPeer, cert.Subject, len(found))
	}
	return found[0], nil
}

// Source gives a component's own certificate and the roots it trusts. It is asked at each handshake, so a rotated
// certificate is used at once.
type Source interface {
	Certificate() (*tls.Certificate, error)
	Roots() (*x509.CertPool, error)
}

// Server returns a TLS configuration that shows the source's certificate and admits only peers that allow accepts.
func Server(s Source, allow func(Peer) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return config(s, x509.ExtKeyUsageClientAuth, allow)
		},
	}
}

// Client returns a TLS configuration for one connection to want; the server's host name plays no role.
func Client(s Source, want Peer) (*tls.Config, error) {
	return config(s, x509.ExtKeyUsageServerAuth, func(p Peer) error {
		if p != want {
			return fmt.Errorf("%w: %s, want %s", ErrPeer, p, want)
		}
		return nil
	})
}

func config(s Source, usage x509.ExtKeyUsage, allow func(Peer) error) (*tls.Config, error) {
	cert, err := s.Certificate()
	if err != nil {
		return nil, fmt.Errorf("reading own certificate: %w", err)
	}
	roots, err := s.Roots()
	if err != nil {
		return nil, fmt.Errorf("reading trusted roots: %w", err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{*cert},
		ClientAuth:   tls.RequireAnyClientCert,
		// The name in the certificate is a URI, not a host: the chain is verified below, with the identity.
		InsecureSkipVerify: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			return verify(cs, x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}, allow)
		},
	}, nil
}

func verify(cs tls.ConnectionState, opts x509.VerifyOptions, allow func(Peer) error) error {
	if len(cs.PeerCertificates) == 0 {
		return fmt.Errorf("%w: no certificate", ErrPeer)
	}
	opts.Intermediates = x509.NewCertPool()
	for _, c := range cs.PeerCertificates[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := cs.PeerCertificates[0].Verify(opts); err != nil {
		return err
	}
	peer, err := Of(cs.PeerCertificates[0])
	if err != nil {
		return err
	}
	return allow(peer)
}
