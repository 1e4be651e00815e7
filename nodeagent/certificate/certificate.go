// Package certificate is how a node agent gets its certificate: it asks for one by a CertificateSigningRequest, which
// virt-operator signs if the account's token is bound to the very node. The key never leaves the process.
package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/machine/names"
)

const (
	// answer is how long a request may go unanswered before it is made anew.
	answer = time.Minute
	// life is asked for; the signer may give less.
	life = 24 * time.Hour
)

var errNone = errors.New("no certificate has been issued yet")

// Node holds the certificate of one node agent and renews it; it is an identity.Source. Make one with its fields set.
type Node struct {
	// Client reads and makes CertificateSigningRequests; no cache is needed.
	Client client.Client
	// Name is the node's.
	Name string
	// CAFile is the bundle of trusted roots, PEM, mounted from the ConfigMap.
	CAFile string

	mu      sync.RWMutex
	current *tls.Certificate
}

// Certificate returns the certificate in force; an error before the first was issued and after the last has expired.
func (n *Node) Certificate() (*tls.Certificate, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	switch {
	case n.current == nil:
		return nil, errNone
	case time.Now().After(n.current.Leaf.NotAfter):
		return nil, fmt.Errorf("the certificate of node %s ended at %s and no other was issued", n.Name, n.current.Leaf.NotAfter)
	}
	return n.current, nil
}

// Roots reads the mounted bundle.
func (n *Node) Roots() (*x509.CertPool, error) { return identity.RootsFile(n.CAFile) }

// Start gets a certificate and renews it at two thirds of its life until ctx ends. It satisfies manager.Runnable.
func (n *Node) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		retry := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 8, Cap: 2 * time.Minute}
		err := retry.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
			cert, err := n.request(ctx)
			if err != nil {
				log.FromContext(ctx).Error(err, "getting a certificate", "node", n.Name)
				return false, nil
			}
			n.mu.Lock()
			n.current = cert
			n.mu.Unlock()
			return true, nil
		})
		if err != nil {
			return nil // ctx has ended
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(Renewal(n.current.Leaf))):
		}
	}
	return nil
}

// Renewal returns when two thirds of a certificate's life are over.
func Renewal(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3)
}

// request makes a key, asks for its certificate and waits for the answer.
func (n *Node) request(ctx context.Context) (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	csr, err := n.csr(key)
	if err != nil {
		return nil, err
	}
	if err := n.Client.Create(ctx, csr); err != nil {
		return nil, fmt.Errorf("asking for a certificate: %w", err)
	}
	issued, err := n.wait(ctx, csr)
	if err != nil {
		return nil, err
	}
	return pair(issued, key)
}

func (n *Node) csr(key *ecdsa.PrivateKey) (*certificatesv1.CertificateSigningRequest, error) {
	who := identity.Peer{Role: identity.RoleNodeAgent, Node: n.Name}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: who.String()},
		URIs:    []*url.URL{who.URI()},
	}, key)
	if err != nil {
		return nil, err
	}
	seconds := int32(life / time.Second)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: names.Handler + "-" + n.Name + "-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName:        names.NodeAgentSigner,
			ExpirationSeconds: &seconds,
			Usages:            []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth},
		},
	}, nil
}

// wait asks until the request has its certificate; a denial and a failure are errors at once.
func (n *Node) wait(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := n.Client.Get(ctx, client.ObjectKeyFromObject(csr), csr); err != nil {
			return false, err
		}
		for _, c := range csr.Status.Conditions {
			if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
				return false, fmt.Errorf("%s: %s", c.Reason, c.Message)
			}
		}
		return len(csr.Status.Certificate) > 0, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for certificate request %s: %w", csr.Name, err)
	}
	return csr.Status.Certificate, nil
}

func pair(issued []byte, key *ecdsa.PrivateKey) (*tls.Certificate, error) {
	cert := &tls.Certificate{PrivateKey: key}
	for block, rest := pem.Decode(issued); block != nil; block, rest = pem.Decode(rest) {
		cert.Certificate = append(cert.Certificate, block.Bytes)
	}
	if len(cert.Certificate) == 0 {
		return nil, errors.New("the signer gave no certificate")
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("reading the issued certificate: %w", err)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return nil, errors.New("the issued certificate is for another key")
	}
	cert.Leaf = leaf
	return cert, nil
}
