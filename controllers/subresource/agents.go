package subresource

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	k8sv1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/kube/identity"
	"virtstack.io/virtstack/machine/names"
)

const (
	// protocol is the websocket subprotocol of byte streams.
	protocol = "plain.kubevirt.io"
	// bufferSize of a websocket, in bytes.
	bufferSize = 10240
	// handshakeTimeout bounds each handshake of a stream.
	handshakeTimeout = 10 * time.Second
	// askTimeout bounds a verb at a node agent; source: contract of KubeVirt.
	askTimeout = 10 * time.Second
	// byNode is the index of node agents by the node they are on.
	byNode = "spec.nodeName"
)

// Agents opens streams at node agents. A node's agent is found by its Pod, and proves by its certificate that it is
// that node's: a Pod that pretends is not spoken to.
type Agents struct {
	// Pods lists node agents' Pods with index byNode.
	Pods client.Reader
	// Identity is virt-api's own certificate and whom it trusts.
	Identity identity.Source
	// Port is the node agents'; zero: names.HandlerPort.
	Port int
}

// AgentPods is the cache of node agents' Pods, trimmed to what an address takes.
func AgentPods() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&k8sv1.Pod{}: {
		Namespaces: map[string]cache.Config{names.Namespace: {
			LabelSelector: labels.SelectorFromSet(labels.Set{v1.AppLabel: names.Handler}),
		}},
		Transform: trim,
	}}
}

func trim(obj any) (any, error) {
	pod, ok := obj.(*k8sv1.Pod)
	if !ok {
		return obj, nil
	}
	small := &k8sv1.Pod{Spec: k8sv1.PodSpec{NodeName: pod.Spec.NodeName}}
	small.Name, small.Namespace, small.UID, small.ResourceVersion = pod.Name, pod.Namespace, pod.UID, pod.ResourceVersion
	small.Labels = map[string]string{v1.AppLabel: pod.Labels[v1.AppLabel]}
	small.DeletionTimestamp = pod.DeletionTimestamp
	small.Status = k8sv1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP}
	return small, nil
}

// nodeOf is the index function of byNode.
func nodeOf(obj client.Object) []string {
	pod, ok := obj.(*k8sv1.Pod)
	if !ok {
		return nil
	}
	return []string{pod.Spec.NodeName}
}

// address returns where the node's agent listens.
func (a Agents) address(ctx context.Context, node string) (string, error) {
	pods := &k8sv1.PodList{}
	err := a.Pods.List(ctx, pods, client.InNamespace(names.Namespace),
		client.MatchingFields{byNode: node}, client.MatchingLabels{v1.AppLabel: names.Handler})
	if err != nil {
		return "", fmt.Errorf("looking for virt-handler on node %s: %w", node, err)
	}
	port := a.Port
	if port == 0 {
		port = names.HandlerPort
	}
	ip := ""
	for _, p := range pods.Items {
		if p.Status.Phase == k8sv1.PodRunning && p.Status.PodIP != "" && (ip == "" || p.DeletionTimestamp == nil) {
			ip = p.Status.PodIP
		}
	}
	if ip == "" {
		return "", fmt.Errorf("no virt-handler is running on node %s", node)
	}
	return net.JoinHostPort(ip, strconv.Itoa(port)), nil
}

// Stream opens a stream of a VMI at its node's agent. Every error is an API error to answer with.
func (a Agents) Stream(ctx context.Context, vmi *v1.VirtualMachineInstance, stream string) (*websocket.Conn, error) {
	u, config, err := a.at(ctx, vmi, stream)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	u.Scheme = "wss"
	return dial(ctx, config, u)
}

// at is where a VMI's node agent serves something of it, and how it is spoken to.
func (a Agents) at(ctx context.Context, vmi *v1.VirtualMachineInstance, what string) (*url.URL, *tls.Config, error) {
	node := vmi.Status.NodeName
	address, err := a.address(ctx, node)
	if err != nil {
		return nil, nil, err
	}
	config, err := identity.Client(a.Identity, identity.Peer{Role: identity.RoleNodeAgent, Node: node})
	path := fmt.Sprintf("/v1/namespaces/%s/virtualmachineinstances/%s/%s", vmi.Namespace, vmi.Name, what)
	return &url.URL{Scheme: "https", Host: address, Path: path}, config, err
}

// Ask asks a VMI's node agent for a verb and returns when it is done. Every error is an API error to answer with.
func (a Agents) Ask(ctx context.Context, vmi *v1.VirtualMachineInstance, verb string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	u, config, err := a.at(ctx, vmi, verb)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, u.String(), nil)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err == nil {
		defer answer.Body.Close()
		err = unexpected(answer)
	}
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("asking virt-handler at %s: %w", u.Host, err))
	}
	return nil
}

// unexpected is the error of an answer that isn't a success.
func unexpected(answer *http.Response) error {
	if answer.StatusCode/100 == 2 {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	status := metav1.Status{}
	if json.Unmarshal(text, &status) == nil && status.Message != "" {
		text = []byte(status.Message)
	}
	return fmt.Errorf("unexpected return code %d (%s)", answer.StatusCode, strings.TrimSpace(string(text)))
}

func dial(ctx context.Context, config *tls.Config, u *url.URL) (*websocket.Conn, error) {
	d := websocket.Dialer{
		TLSClientConfig:  config,
		Subprotocols:     []string{protocol},
		HandshakeTimeout: handshakeTimeout,
		ReadBufferSize:   bufferSize,
		WriteBufferSize:  bufferSize,
	}
	conn, answer, err := d.DialContext(ctx, u.String(), nil)
	if err == nil {
		return conn, nil
	}
	if answer != nil && answer.StatusCode != http.StatusSwitchingProtocols {
		err = unexpected(answer)
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("dialing virt-handler at %s: %w", u.Host, err))
}
