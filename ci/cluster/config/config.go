// Package config renders the configuration files of the cluster's programs.
package config

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"virtstack.io/virtstack/ci/cluster/layout"
)

// Where a node's programs find themselves and their configuration, inside the node.
const (
	NodeDir    = "/run/cluster"
	NodeBin    = NodeDir + "/bin"
	NodeConfig = NodeDir + "/config"
	NodeLogs   = NodeDir + "/logs"
	NodeData   = NodeDir + "/data"
)

//go:embed audit.yaml containerd.toml kubelet.yaml kube-proxy.yaml 10-bridge.conflist
var files embed.FS

// values is what the templates may name.
type values struct {
	Name, PodCIDR, PodCIDRs, DNS, Bin, Config string
}

// Audit returns the API server's audit policy.
func Audit() ([]byte, error) { return files.ReadFile("audit.yaml") }

// Node returns the node's configuration files by name.
func Node(n layout.Node) (map[string][]byte, error) {
	v := values{n.Name(), n.PodCIDR(), layout.PodCIDR, layout.ServiceDNS, NodeBin, NodeConfig}
	rendered := map[string][]byte{}
	for _, name := range []string{"containerd.toml", "kubelet.yaml", "kube-proxy.yaml", "10-bridge.conflist"} {
		t, err := template.ParseFS(files, name)
		if err != nil {
			return nil, err
		}
		var buf bytes.Buffer
		if err := t.Option("missingkey=error").Execute(&buf, v); err != nil {
			return nil, fmt.Errorf("rendering %s: %w", name, err)
		}
		rendered[name] = buf.Bytes()
	}
	return rendered, nil
}

// WriteNode writes the node's files into its configuration directory.
func WriteNode(n layout.Node) error {
	rendered, err := Node(n)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(n.Config(), 0o755); err != nil {
		return err
	}
	for name, raw := range rendered {
		if err := os.WriteFile(filepath.Join(n.Config(), name), raw, 0o644); err != nil {
			return err
		}
	}
	return nil
}
