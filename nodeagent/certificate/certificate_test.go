package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	k8sv1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/kube/kubetest"
	"virtstack.io/virtstack/machine/names"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// signer signs every request for the agent of a node, whatever was asked for.
type signer struct {
	kube kubernetes.Interface
	node string
	life time.Duration
	seen chan *x509.CertificateRequest
}

func (s *signer) run(ctx context.Context, t *testing.T) {
	w, err := s.kube.CertificatesV1().CertificateSigningRequests().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		csr, ok := e.Object.(*certificatesv1.CertificateSigningRequest)
		if !ok || len(csr.Status.Conditions) > 0 {
			continue
		}
		if err := s.sign(ctx, csr); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
}

func (s *signer) sign(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	block, _ := pem.Decode(csr.Spec.Request)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now().Add(-time.Second)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: now, NotAfter: now.Add(s.life), URIs: []*url.URL{peer(s.node).URI()},
	}, ca, request.PublicKey, key)
	if err != nil {
		return err
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: k8sv1.ConditionTrue, Reason: "Test"}}
	csrs := s.kube.CertificatesV1().CertificateSigningRequests()
	csr, err = csrs.UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if _, err := csrs.UpdateStatus(ctx, csr, metav1.UpdateOptions{}); err != nil {
		return err
	}
	s.seen <- request
	return nil
}

func start(t *testing.T, node string, s *signer) *Holder {
	t.Helper()
	e := kubetest.Start(t)
	s.kube, s.seen = kubernetes.NewForConfigOrDie(e.Config), make(chan *x509.CertificateRequest, 10)
	h := &Holder{Node: node, Client: kubernetes.NewForConfigOrDie(e.Config)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { s.run(ctx, t); done <- nil }()
	go func() { done <- h.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, <-done); err != nil {
			t.Error(err)
		}
	})
	return h
}

func next(t *testing.T, s *signer) *x509.CertificateRequest {
	t.Helper()
	select {
	case r := <-s.seen:
		return r
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was requested")
		return nil
	}
}

func TestACertificateIsRequestedAndRenewedWithANewKey(t *testing.T) {
	s := &signer{node: "node-a", life: 9 * time.Second}
	h := start(t, "node-a", s)
	first := next(t, s)
	if len(first.URIs) != 1 || first.URIs[0].String() != "virtstack://virt-handler/node-a" || len(first.DNSNames)+len(first.IPAddresses) > 0 {
		t.Errorf("asked for %v %v", first.URIs, first.DNSNames)
	}
	second := next(t, s)
	if first.PublicKey.(*ecdsa.PublicKey).Equal(second.PublicKey) {
		t.Error("the key was used again")
	}
	c, err := h.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := identity.Of(c.Leaf); err != nil || got != (identity.Peer{Role: identity.RoleNodeAgent, Node: "node-a"}) {
		t.Errorf("it is of %v, %v", got, err)
	}
}

func TestACertificateOfAnotherNodeIsNotTaken(t *testing.T) {
	s := &signer{node: "node-b", life: time.Hour}
	h := start(t, "node-a", s)
	next(t, s)
	next(t, s) // it has judged the first by now
	if _, err := h.Certificate(); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want %v", err, ErrNone)
	}
}

func TestAnExpiredCertificateIsNone(t *testing.T) {
	h := &Holder{Node: "node-a"}
	h.current.Store(&tls.Certificate{Leaf: &x509.Certificate{NotAfter: time.Now().Add(-time.Second)}})
	if _, err := h.Certificate(); !errors.Is(err, ErrNone) {
		t.Errorf("got %v, want %v", err, ErrNone)
	}
}

func TestRenewalIsAtTwoThirds(t *testing.T) {
	from := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	c := &x509.Certificate{NotBefore: from, NotAfter: from.Add(24 * time.Hour)}
	for at, want := range map[time.Duration]time.Duration{0: 16 * time.Hour, 10 * time.Hour: 6 * time.Hour, 20 * time.Hour: time.Second} {
		if got := renewal(from.Add(at), c); got != want {
			t.Errorf("%v into its life: in %v, want %v", at, got, want)
		}
	}
}

func TestARequestsNameFitsTheAPIServer(t *testing.T) {
	long := requestName(strings.Repeat("n", 253), []byte("a"))
	if len(long) > 253 || long == requestName(strings.Repeat("n", 253), []byte("b")) || !strings.HasPrefix(long, names.Handler) {
		t.Errorf("got %q", long)
	}
}
