package plan

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"virtstack.io/virtstack/machine/names"
)

// What the API server says of the account that asks.
const (
	handlerUser = "system:serviceaccount:" + names.Namespace + ":kubevirt-handler"
	nodeExtra   = "authentication.kubernetes.io/node-name"
)

// NodeAgent returns the node whose agent asks for a certificate, and its certificate request, or why it may not have
// one: it must be the node agents' account, with a token bound to the very node that the request names, and ask for
// nothing else.
func NodeAgent(csr *certificatesv1.CertificateSigningRequest) (node string, request *x509.CertificateRequest, err error) {
	if csr.Spec.Username != handlerUser {
		return "", nil, fmt.Errorf("it comes from %q, want %q", csr.Spec.Username, handlerUser)
	}
	bound := csr.Spec.Extra[nodeExtra]
	if len(bound) != 1 || bound[0] == "" {
		return "", nil, fmt.Errorf("the token it was sent with is not bound to one node")
	}
	usages := slices.Sorted(slices.Values(csr.Spec.Usages))
	want := []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	if !slices.Equal(usages, want) {
		return "", nil, fmt.Errorf("its usages are %v, want exactly %v", usages, want)
	}
	block, rest := pem.Decode(csr.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return "", nil, fmt.Errorf("it holds no single PEM certificate request")
	}
	request, err = x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", nil, fmt.Errorf("parsing the request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return "", nil, fmt.Errorf("the request is not signed with its key: %w", err)
	}
	if err := onlyURI(request, "virtstack://virt-handler/"+bound[0]); err != nil {
		return "", nil, err
	}
	return bound[0], request, nil
}

func onlyURI(r *x509.CertificateRequest, want string) error {
	if len(r.URIs) != 1 || r.URIs[0].String() != want {
		return fmt.Errorf("its URIs are %v, want exactly %s", r.URIs, want)
	}
	if len(r.DNSNames)+len(r.IPAddresses)+len(r.EmailAddresses) > 0 {
		return fmt.Errorf("it asks for names other than %s", want)
	}
	return nil
}
