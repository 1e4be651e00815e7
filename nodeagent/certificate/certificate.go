// Package certificate gets the node agent its certificate from the cluster: by a CertificateSigningRequest that the
// operator signs only for the node that the agent's token is bound to. Key and certificate live in memory.
package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate/csr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/machine/names"
)

// ErrNone is returned while the node has no certificate that is valid.
var ErrNone = errors.New("no certificate yet")

// attempt is how long one request may wait to be signed: an operator that is being upgraded takes a minute.
const attempt = 2 * time.Minute

// Holder holds the certificate of a node agent. It is the identity.Source of the node agent's links.
type Holder struct {
	Node   string
	Client kubernetes.Interface
	// CAFile is the bundle of trusted roots, read anew at each handshake.
	CAFile string

	current atomic.Pointer[tls.Certificate]
}

// Certificate returns the certificate, ErrNone while there is none that is valid.
func (h *Holder) Certificate() (*tls.Certificate, error) {
	c := h.current.Load()
	if c == nil || time.Now().After(c.Leaf.NotAfter) {
		return nil, ErrNone
	}
	return c, nil
}

// Roots returns the trusted roots.
func (h *Holder) Roots() (*x509.CertPool, error) { return identity.RootsFile(h.CAFile) }

// NeedLeaderElection is false: each node has its own certificate.
func (*Holder) NeedLeaderElection() bool { return false }

// Start requests a certificate, and a new one with a new key after two thirds of its life, until ctx ends.
func (h *Holder) Start(ctx context.Context) error {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 6, Cap: time.Minute}
	delay := backoff
	for ctx.Err() == nil {
		pause := delay.Step()
		if err := h.renew(ctx); err == nil {
			delay = backoff
			pause = renewal(time.Now(), h.current.Load().Leaf)
		} else if ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "getting a certificate")
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// renewal returns how long to wait before a certificate is renewed.
func renewal(now time.Time, c *x509.Certificate) time.Duration {
	return max(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore)*2/3).Sub(now), time.Second)
}

func (h *Holder) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	request, err := request(h.Node, key)
	if err != nil {
		return err
	}
	usages := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth, certificatesv1.UsageClientAuth}
	name, uid, err := csr.RequestCertificateWithContext(ctx, h.Client, request, requestName(h.Node, request), names.NodeAgentSigner, nil, usages, key)
	if err != nil {
		return fmt.Errorf("requesting a certificate: %w", err)
	}
	issued, err := csr.WaitForCertificate(ctx, h.Client, name, uid)
	if err != nil {
		return fmt.Errorf("waiting for certificate request %s: %w", name, err)
	}
	return h.take(issued, key)
}

// take makes an issued certificate the current one if it is this node's.
func (h *Holder) take(issued []byte, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(issued, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}))
	if err != nil {
		return fmt.Errorf("reading the issued certificate: %w", err)
	}
	if pair.Leaf == nil {
		return errors.New("reading the issued certificate: no leaf")
	}
	peer, err := identity.Of(pair.Leaf)
	if err != nil {
		return err
	}
	if want := h.peer(); peer != want {
		return fmt.Errorf("the issued certificate is of %s, want %s", peer, want)
	}
	h.current.Store(&pair)
	return nil
}

func (h *Holder) peer() identity.Peer { return peer(h.Node) }

func peer(node string) identity.Peer {
	return identity.Peer{Role: identity.RoleNodeAgent, Node: node}
}

// request returns a PEM certificate request for the agent of a node.
func request(node string, key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{peer(node).URI()}}, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// requestName names a request after the node and the request itself; a node's name may be 253 bytes long.
func requestName(node string, request []byte) string {
	sum := sha256.Sum256(request)
	return names.Handler + "-" + node[:min(len(node), 200)] + "-" + hex.EncodeToString(sum[:8])
}
