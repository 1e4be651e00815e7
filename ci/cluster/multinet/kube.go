package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Annotations of a Pod.
const (
	networksKey = "k8s.v1.cni.cncf.io/networks"
	defaultKey  = "v1.multus-cni.io/default-network"
	statusKey   = "k8s.v1.cni.cncf.io/network-status"
)

// wanted is one network that a Pod is to be attached to.
type wanted struct {
	name      string // <namespace>/<name>, or the cluster's own
	nic       string // in the Pod
	mac       string // empty: the plugin's choice
	config    []byte
	isDefault bool
}

// pod speaks of one Pod to the API server. It uses no typed client: those would make the plugin fifty times as large.
type pod struct {
	client          *http.Client
	host            string
	namespace, name string
}

func open(kubeconfig, namespace, name string) (*pod, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", kubeconfig, err)
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	return &pod{client, c.Host, namespace, name}, nil
}

func (p *pod) call(ctx context.Context, method, path string, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, p.host+path, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/merge-patch+json")
	response, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 4<<20))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, answer)
	}
	return json.Unmarshal(answer, into)
}

// selection is one entry of the annotation that asks for networks.
type selection struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Interface string `json:"interface"`
	MAC       string `json:"mac"`
}

// wanted returns what the Pod's annotations ask for, the default network first.
func (p *pod) wanted(ctx context.Context, own []byte) ([]wanted, error) {
	var found struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := p.call(ctx, http.MethodGet, "/api/v1/namespaces/"+p.namespace+"/pods/"+p.name, nil, &found); err != nil {
		return nil, err
	}
	first := wanted{name: "cluster", config: own, nic: "eth0", isDefault: true}
	if other := found.Metadata.Annotations[defaultKey]; other != "" {
		s := p.parse(other)
		w, err := p.definition(ctx, s)
		if err != nil {
			return nil, err
		}
		first.name, first.config = w.name, w.config
	}
	all := []wanted{first}
	more, err := p.selections(found.Metadata.Annotations[networksKey])
	if err != nil {
		return nil, err
	}
	for i, s := range more {
		w, err := p.definition(ctx, s)
		if err != nil {
			return nil, err
		}
		if w.nic == "" {
			w.nic = fmt.Sprintf("net%d", i+1)
		}
		all = append(all, w)
	}
	return all, nil
}

// selections reads the annotation in either of its forms: JSON, or names with commas between them.
func (p *pod) selections(text string) ([]selection, error) {
	var list []selection
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("annotation %s: %w", networksKey, err)
		}
		for i := range list {
			if list[i].Namespace == "" {
				list[i].Namespace = p.namespace
			}
		}
		return list, nil
	}
	for _, one := range strings.Split(text, ",") {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, p.parse(one))
		}
	}
	return list, nil
}

// parse reads [<namespace>/]<name>[@<interface>].
func (p *pod) parse(text string) selection {
	s := selection{Name: text, Namespace: p.namespace}
	s.Name, s.Interface, _ = strings.Cut(s.Name, "@")
	if namespace, name, found := strings.Cut(s.Name, "/"); found {
		s.Namespace, s.Name = namespace, name
	}
	return s
}

func (p *pod) definition(ctx context.Context, s selection) (wanted, error) {
	var found struct {
		Spec struct {
			Config string `json:"config"`
		} `json:"spec"`
	}
	path := "/apis/k8s.cni.cncf.io/v1/namespaces/" + s.Namespace + "/network-attachment-definitions/" + s.Name
	if err := p.call(ctx, http.MethodGet, path, nil, &found); err != nil {
		return wanted{}, err
	}
	return wanted{name: s.Namespace + "/" + s.Name, nic: s.Interface, mac: s.MAC, config: []byte(found.Spec.Config)}, nil
}

// tell writes the annotation that tells of the networks. A node may write the status of its Pods, and that is enough.
func (p *pod) tell(ctx context.Context, what []status) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{statusKey: string(text)}}}
	return p.call(ctx, http.MethodPatch, "/api/v1/namespaces/"+p.namespace+"/pods/"+p.name+"/status", patch, &struct{}{})
}
