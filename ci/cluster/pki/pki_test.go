package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"virtstack.io/virtstack/ci/cluster/layout"
)

var now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)

func made(t *testing.T) layout.Dir {
	t.Helper()
	d := layout.Dir(t.TempDir())
	if err := ControlPlane(d, now); err != nil {
		t.Fatal(err)
	}
	if err := Node(d, d.Node(1), now); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCertificatesAreTrustedForTheirNames(t *testing.T) {
	d := made(t)
	s := Store(d.PKI())
	for _, tc := range []struct{ cert, ca, name, user string }{
		{"apiserver", "ca", "kubernetes.default.svc", "kube-apiserver"},
		{"apiserver", "ca", layout.HostIP, "kube-apiserver"},
		{"apiserver", "ca", layout.ServiceAPI, "kube-apiserver"},
		{"node1", "ca", d.Node(1).IP(), "system:node:node1"},
		{"front-proxy-client", "front-proxy-ca", "", "front-proxy-client"},
		{"admin", "ca", "", "admin"},
	} {
		roots := x509.NewCertPool()
		ca, err := os.ReadFile(s.Cert(tc.ca))
		if err != nil || !roots.AppendCertsFromPEM(ca) {
			t.Fatalf("%s: %v", tc.ca, err)
		}
		pair, err := tls.LoadX509KeyPair(s.Cert(tc.cert), s.Key(tc.cert))
		if err != nil {
			t.Fatal(err)
		}
		opts := x509.VerifyOptions{DNSName: tc.name, Roots: roots, CurrentTime: now.Add(time.Hour), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if _, err := pair.Leaf.Verify(opts); err != nil || pair.Leaf.Subject.CommonName != tc.user {
			t.Errorf("%s for %q: %v, user %q", tc.cert, tc.name, err, pair.Leaf.Subject.CommonName)
		}
	}
}

func TestASecondRunKeepsWhatIsThere(t *testing.T) {
	d := made(t)
	first, err := os.ReadFile(d.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if err := ControlPlane(d, now.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(d.Kubeconfig())
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("kubeconfig changed: %v", err)
	}
}

func TestSecretsAreTheOwnersAlone(t *testing.T) {
	d := made(t)
	for _, f := range []string{d.Kubeconfig(), Store(d.PKI()).Key("ca"), filepath.Join(d.Node(1).Config(), "kubelet.key")} {
		if fi, err := os.Stat(f); err != nil || fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v, want 0600", f, fi.Mode(), err)
		}
	}
}

func TestKubeconfigHoldsItsUser(t *testing.T) {
	d := made(t)
	raw, err := os.ReadFile(d.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Users []struct {
			User map[string]string
		}
		Clusters []struct{ Cluster map[string]string }
	}
	if err := yaml.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(Store(d.PKI()).Cert("admin"))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := base64.StdEncoding.DecodeString(got.Users[0].User["client-certificate-data"])
	if err != nil || !bytes.Equal(cert, want) {
		t.Errorf("certificate %q %v, want the admin's", cert, err)
	}
	if got.Clusters[0].Cluster["server"] != layout.APIServer {
		t.Errorf("server %q, want %q", got.Clusters[0].Cluster["server"], layout.APIServer)
	}
}
