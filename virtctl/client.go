package virtctl

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gorilla/websocket"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	transport "k8s.io/client-go/transport/websocket"
	v1 "kubevirt.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// protocol is the websocket subprotocol of byte streams.
	protocol     = "plain.kubevirt.io"
	subresources = "/apis/" + v1.SubresourceGroupName
)

// client speaks to the API server by path: no discovery, one request per step.
type client struct {
	rest   *rest.RESTClient
	config *rest.Config
}

// connect returns a client, and the target in the namespace that counts.
func (e *environment) connect(arg string) (*client, target, error) {
	t, err := parseTarget(arg)
	if err != nil {
		return nil, t, err
	}
	loader := e.connection.ToRawKubeConfigLoader()
	namespace, explicit, err := loader.Namespace()
	if err != nil {
		return nil, t, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	t, err = t.in(namespace, explicit)
	if err != nil {
		return nil, t, err
	}
	c, err := e.client()
	return c, t, err
}

func (e *environment) client() (*client, error) {
	config, err := e.connection.ToRESTConfig()
	if err != nil {
		return nil, hinted(err, "no cluster to talk to: %v\nCheck --kubeconfig, --context and $KUBECONFIG.", err)
	}
	config = rest.CopyConfig(config)
	config.GroupVersion = &schema.GroupVersion{Group: v1.SubresourceGroupName, Version: "v1"}
	config.APIPath = "/apis"
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	if config.UserAgent == "" {
		config.UserAgent = "virtctl"
	}
	r, err := rest.RESTClientFor(config)
	return &client{r, config}, err
}

// put calls a verb of a VM, or of a VMI, with its options.
func (c *client) put(ctx context.Context, t target, call call) error {
	body, err := json.Marshal(call.options)
	if err != nil {
		return err
	}
	r := c.rest.Put().AbsPath(path(subresources+"/v1", t.namespace, t.resource(), t.name, call.verb)...)
	for name := range call.query {
		r = r.Param(name, call.query.Get(name))
	}
	return r.SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

// open opens a stream of a VMI.
func (c *client) open(ctx context.Context, t target, stream string) (*websocket.Conn, error) {
	u := c.rest.Get().AbsPath(path(subresources+"/v1", t.namespace, "virtualmachineinstances", t.name, stream)...).URL()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	trip, holder, err := transport.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	return transport.Negotiate(trip, holder, req, protocol)
}

func (c *client) vm(ctx context.Context, t target) (*v1.VirtualMachine, error) {
	vm := &v1.VirtualMachine{}
	return vm, c.get(ctx, vm, path("/apis/kubevirt.io/v1", t.namespace, "virtualmachines", t.name)...)
}

// names lists the names of a kind in a namespace, at most 500.
func (c *client) names(ctx context.Context, namespace, resource string) ([]string, error) {
	raw, err := c.rest.Get().AbsPath(path("/apis/kubevirt.io/v1", namespace, resource)...).Param("limit", "500").
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	list := metav1.PartialObjectMetadataList{}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	var all []string
	for _, item := range list.Items {
		all = append(all, item.Name)
	}
	return all, nil
}

func (c *client) get(ctx context.Context, into any, path ...string) error {
	// Do, not DoRaw: it makes the server's Status an error.
	raw, err := c.rest.Get().AbsPath(path...).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// create makes an object at the path of its kind.
func (c *client) create(ctx context.Context, object any, path ...string) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return c.rest.Post().AbsPath(path...).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

func path(base, namespace string, rest ...string) []string {
	return append([]string{base, "namespaces", namespace}, rest...)
}
