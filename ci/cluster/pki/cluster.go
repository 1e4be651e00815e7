package pki

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"virtstack.io/virtstack/ci/cluster/layout"
)

const (
	clusterCA = "ca"
	frontCA   = "front-proxy-ca"
)

// ControlPlane makes everything that the control plane and the administrator need, kubeconfigs included.
func ControlPlane(d layout.Dir, now time.Time) error {
	s := Store(d.PKI())
	if err := s.Authority(clusterCA, Subject{Name: "kubernetes-ca"}, now); err != nil {
		return err
	}
	if err := s.Authority(frontCA, Subject{Name: "front-proxy-ca"}, now); err != nil {
		return err
	}
	if err := s.SigningKey("sa"); err != nil {
		return err
	}
	for _, c := range []struct {
		name, ca string
		subject  Subject
	}{
		{"apiserver", clusterCA, apiServer()},
		{"apiserver-kubelet-client", clusterCA, Subject{Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}}},
		{"front-proxy-client", frontCA, Subject{Name: "front-proxy-client"}},
		{"admin", clusterCA, Subject{Name: "admin", Groups: []string{"system:masters"}}},
		{"controller-manager", clusterCA, Subject{Name: "system:kube-controller-manager"}},
		{"scheduler", clusterCA, Subject{Name: "system:kube-scheduler"}},
		{"proxy", clusterCA, Subject{Name: "system:kube-proxy"}},
	} {
		if err := s.Issue(c.name, c.ca, c.subject, now); err != nil {
			return err
		}
	}
	for _, name := range []string{"controller-manager", "scheduler", "proxy"} {
		if err := s.kubeconfig(name, s.file(name+".kubeconfig")); err != nil {
			return err
		}
	}
	return s.kubeconfig("admin", d.Kubeconfig())
}

func apiServer() Subject {
	return Subject{
		Name: "kube-apiserver",
		DNS:  []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPs:  []string{"127.0.0.1", layout.HostIP, layout.ServiceAPI},
	}
}

// Node makes a node's certificate and copies what its programs need into its configuration directory.
func Node(d layout.Dir, n layout.Node, now time.Time) error {
	s := Store(d.PKI())
	subject := Subject{
		Name: "system:node:" + n.Name(), Groups: []string{"system:nodes"},
		DNS: []string{n.Name()}, IPs: []string{n.IP()},
	}
	if err := s.Issue(n.Name(), clusterCA, subject, now); err != nil {
		return err
	}
	if err := os.MkdirAll(n.Config(), 0o755); err != nil {
		return err
	}
	for to, from := range map[string]string{
		"ca.crt": s.Cert(clusterCA), "kubelet.crt": s.Cert(n.Name()), "kubelet.key": s.Key(n.Name()),
	} {
		raw, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(n.Config(), to), raw, 0o600); err != nil {
			return err
		}
	}
	if err := s.kubeconfig("proxy", filepath.Join(n.Config(), "kube-proxy.kubeconfig")); err != nil {
		return err
	}
	return s.kubeconfig(n.Name(), filepath.Join(n.Config(), "kubelet.kubeconfig"))
}

func (s Store) file(name string) string { return filepath.Join(string(s), name) }

const kubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: virtstack
  cluster:
    server: SERVER
    certificate-authority-data: CA
users:
- name: USER
  user:
    client-certificate-data: CERT
    client-key-data: KEY
contexts:
- name: virtstack
  context: {cluster: virtstack, user: USER}
current-context: virtstack
`

// kubeconfig writes the user's kubeconfig, which needs no other file.
func (s Store) kubeconfig(user, file string) error {
	data := map[string]string{"CA": s.Cert(clusterCA), "CERT": s.Cert(user), "KEY": s.Key(user)}
	pairs := []string{"SERVER", layout.APIServer, "USER", user}
	for word, path := range data {
		raw, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("writing kubeconfig of %s: %w", user, err)
		}
		pairs = append(pairs, "-data: "+word+"\n", "-data: "+base64.StdEncoding.EncodeToString(raw)+"\n")
	}
	return os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(kubeconfig)), 0o600)
}
