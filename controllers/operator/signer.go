package operator

import (
	"context"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/controllers/operator/pki"
	"virtstack.io/virtstack/controllers/operator/plan"
	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/machine/names"
)

// nodeAgentLife is how long a node agent's certificate lasts at most.
const nodeAgentLife = 24 * time.Hour

// Signer answers the certificate requests of node agents.
type Signer struct {
	client client.Client
	live   client.Reader
}

// Round approves and signs, or denies, one request. Who may approve a signer's requests is the API server's business;
// so what was approved by someone else is judged again before it is signed.
func (s *Signer) Round(ctx context.Context, key types.NamespacedName, now time.Time) (time.Time, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := s.client.Get(ctx, key, csr); err != nil {
		return time.Time{}, client.IgnoreNotFound(err)
	}
	if csr.Spec.SignerName != names.NodeAgentSigner || len(csr.Status.Certificate) > 0 || decided(csr, certificatesv1.CertificateDenied) {
		return time.Time{}, nil
	}
	csr = csr.DeepCopy()
	node, request, err := plan.NodeAgent(csr)
	if err != nil {
		return time.Time{}, s.decide(ctx, csr, certificatesv1.CertificateDenied, err.Error())
	}
	a, err := authority(ctx, s.live)
	if err != nil {
		return time.Time{}, err
	}
	if len(a.Current.Cert) == 0 {
		return now.Add(2 * time.Second), nil
	}
	if !decided(csr, certificatesv1.CertificateApproved) {
		err := s.decide(ctx, csr, certificatesv1.CertificateApproved, "it is the agent of node "+node)
		if err != nil {
			return time.Time{}, err
		}
	}
	life := nodeAgentLife
	if e := csr.Spec.ExpirationSeconds; e != nil {
		life = min(life, time.Duration(*e)*time.Second)
	}
	peer := identity.Peer{Role: identity.RoleNodeAgent, Node: node}
	if csr.Status.Certificate, err = pki.Sign(now, a, peer, request.PublicKey, life); err != nil {
		return time.Time{}, err
	}
	if err := s.client.Status().Update(ctx, csr); err != nil {
		return time.Time{}, fmt.Errorf("handing out the certificate of %s: %w", peer, err)
	}
	return time.Time{}, nil
}

func decided(csr *certificatesv1.CertificateSigningRequest, how certificatesv1.RequestConditionType) bool {
	for _, c := range csr.Status.Conditions {
		if c.Type == how {
			return true
		}
	}
	return false
}

func (s *Signer) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, how certificatesv1.RequestConditionType, why string) error {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: how, Status: corev1.ConditionTrue, Reason: "NodeAgent", Message: why, LastUpdateTime: metav1.Now(),
	})
	if err := s.client.SubResource("approval").Update(ctx, csr); err != nil {
		return fmt.Errorf("deciding on certificate request %s: %w", csr.Name, err)
	}
	return nil
}
