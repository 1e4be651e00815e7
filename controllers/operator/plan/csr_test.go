package plan_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/url"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"virtstack.io/virtstack/controllers/operator/plan"
)

func request(t *testing.T, change func(*x509.CertificateRequest)) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &x509.CertificateRequest{URIs: []*url.URL{uri("virtstack://virt-handler/node-1")}}
	change(r)
	der, err := x509.CreateCertificateRequest(rand.Reader, r, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func uri(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

// S9: nobody gets the identity of another node, or another role.
func TestOnlyANodesAgentGetsItsCertificate(t *testing.T) {
	type (
		of  = func(*certificatesv1.CertificateSigningRequestSpec)
		req = func(*x509.CertificateRequest)
	)
	for name, tc := range map[string]struct {
		spec of
		req  req
		want string // of the refusal, "" for none
	}{
		"its own":        {},
		"other account":  {spec: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Username = "eve" }, want: "eve"},
		"unbound token":  {spec: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Extra = nil }, want: "not bound"},
		"another node":   {req: func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri("virtstack://virt-handler/node-2")} }, want: "node-2"},
		"another role":   {req: func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri("virtstack://virt-api")} }, want: "virt-api"},
		"two identities": {req: func(r *x509.CertificateRequest) { r.URIs = append(r.URIs, uri("virtstack://virt-api")) }, want: "exactly"},
		"no identity":    {req: func(r *x509.CertificateRequest) { r.URIs = nil }, want: "exactly"},
		"a host name":    {req: func(r *x509.CertificateRequest) { r.DNSNames = []string{"virt-api.kubevirt.svc"} }, want: "other than"},
		"an address":     {req: func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} }, want: "other than"},
		"an e-mail":      {req: func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@example.test"} }, want: "other than"},
		"more usages":    {spec: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = append(s.Usages, "cert sign") }, want: "usages"},
		"fewer usages":   {spec: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = s.Usages[:2] }, want: "usages"},
		"not PEM":        {spec: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = []byte("x") }, want: "PEM"},
		"not a request": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST"})
		}, want: "parsing"},
		"more than one":   {spec: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = append(s.Request, s.Request...) }, want: "single"},
		"forged contents": {spec: func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = forged(s.Request) }, want: "not signed"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.req == nil {
				tc.req = func(*x509.CertificateRequest) {}
			}
			csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
				Username: "system:serviceaccount:kubevirt:kubevirt-handler",
				Extra:    map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/node-name": {"node-1"}},
				Usages:   []certificatesv1.KeyUsage{"digital signature", "server auth", "client auth"},
				Request:  request(t, tc.req),
			}}
			if tc.spec != nil {
				tc.spec(&csr.Spec)
			}
			node, r, err := plan.NodeAgent(csr)
			switch {
			case tc.want == "" && (err != nil || node != "node-1" || r == nil):
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}

// forged changes a letter of the signed part.
func forged(data []byte) []byte {
	block, _ := pem.Decode(data)
	at := strings.Index(string(block.Bytes), "node-1")
	block.Bytes[at+4] = '_'
	return pem.EncodeToMemory(block)
}
