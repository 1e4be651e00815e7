// Package api asks the cluster's API server the few questions that bringing it up needs.
package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"

	"virtstack.io/virtstack/ci/cluster/layout"
	"virtstack.io/virtstack/ci/cluster/pki"
)

// maxAnswer bounds what is read of one answer, in bytes.
const maxAnswer = 64 << 20

// Client acts as the administrator.
type Client struct {
	dir  layout.Dir
	http *http.Client
}

// New returns a client of the cluster in d, whose certificates must be there.
func New(d layout.Dir) (*Client, error) {
	s := pki.Store(d.PKI())
	cert, err := tls.LoadX509KeyPair(s.Cert("admin"), s.Key("admin"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(s.Cert("ca"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the cluster's authority is not PEM")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, MinVersion: tls.VersionTLS13}}
	return &Client{d, &http.Client{Transport: tr, Timeout: 5 * time.Second}}, nil
}

func (c *Client) get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, layout.APIServer+path, nil)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("getting %s: %s", path, resp.Status)
	}
	return body, err
}

// Ready reports whether the API server answers and says it is ready.
func (c *Client) Ready(ctx context.Context) bool {
	_, err := c.get(ctx, "/readyz")
	return err == nil
}

// condition is a Node's or a Pod's.
type condition struct {
	Type, Status      string
	LastHeartbeatTime time.Time
}

func holds(all []condition, kind string) (condition, bool) {
	for _, c := range all {
		if c.Type == kind {
			return c, c.Status == "True"
		}
	}
	return condition{}, false
}

// NodeReady reports whether the node is Ready and its kubelet has said so since: right after a start, the API server
// still holds what was true before.
func (c *Client) NodeReady(ctx context.Context, name string, since time.Time) bool {
	var node struct {
		Status struct{ Conditions []condition }
	}
	raw, err := c.get(ctx, "/api/v1/nodes/"+name)
	if err != nil || json.Unmarshal(raw, &node) != nil {
		return false
	}
	cond, ok := holds(node.Status.Conditions, "Ready")
	return ok && !cond.LastHeartbeatTime.Before(since.Truncate(time.Second))
}

// Nodes returns the names of all Nodes.
func (c *Client) Nodes(ctx context.Context) ([]string, error) {
	raw, err := c.get(ctx, "/api/v1/nodes")
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var names []string
	for _, n := range list.Items {
		names = append(names, n.Metadata.Name)
	}
	return names, nil
}

type pod struct {
	Metadata struct {
		Name              string
		DeletionTimestamp *time.Time
	}
	Status struct {
		Conditions        []condition
		ContainerStatuses []struct {
			State struct {
				Running *struct{ StartedAt time.Time }
			}
		}
	}
}

// PodsReady returns how many Pods of the namespace are Ready with containers started since, and how many there are.
func (c *Client) PodsReady(ctx context.Context, namespace string, since time.Time) (ready, all int, err error) {
	raw, err := c.get(ctx, "/api/v1/namespaces/"+namespace+"/pods")
	if err != nil {
		return 0, 0, err
	}
	var list struct{ Items []pod }
	if err := json.Unmarshal(raw, &list); err != nil {
		return 0, 0, err
	}
	for _, p := range list.Items {
		if p.Metadata.DeletionTimestamp != nil {
			continue
		}
		all++
		if p.ready(since.Truncate(time.Second)) {
			ready++
		}
	}
	return ready, all, nil
}

func (p pod) ready(since time.Time) bool {
	_, ok := holds(p.Status.Conditions, "Ready")
	for _, c := range p.Status.ContainerStatuses {
		ok = ok && c.State.Running != nil && !c.State.Running.StartedAt.Before(since)
	}
	return ok
}

// Apply applies the manifests in the directory.
func (c *Client) Apply(ctx context.Context, dir string) error {
	return c.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager=dev-cluster", "-f", dir)
}

// ForgetNode deletes a Node whose machine is gone for good, and what ran there: Kubernetes itself would wait a minute.
func (c *Client) ForgetNode(ctx context.Context, name string) error {
	return errors.Join(
		c.kubectl(ctx, "delete", "node", name, "--ignore-not-found"),
		c.kubectl(ctx, "delete", "pods", "--all-namespaces", "--field-selector=spec.nodeName="+name, "--force", "--grace-period=0"),
	)
}

func (c *Client) kubectl(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, c.dir.Program("kubectl"), append([]string{"--kubeconfig", c.dir.Kubeconfig()}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[0], err, out)
	}
	return nil
}
