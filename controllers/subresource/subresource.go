// Package subresource is virt-api: the aggregated API subresources.kubevirt.io (console, start, stop, restart,
// expand and what comes later), and the webhooks in the same process. A request is authenticated by the API server's front
// proxy, reviewed by its exact URL, and served by the verb that a table of routes has for it.
package subresource

import (
	"context"
	"net/http"

	"github.com/go-logr/logr"
	authorization "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/config"
)

// manager is the field manager of everything that virt-api writes.
const manager = "virt-api"

// Server serves the aggregated API.
type Server struct {
	// Kube reads and writes the API server without a cache: a verb acts on what is true now.
	Kube client.Client
	// Config is what the one KubeVirt says now.
	Config func(context.Context) (config.Config, error)
	// Authenticator says who asks.
	Authenticator authenticator.Request
	// Reviewer says whether they may.
	Reviewer Reviewer
	// Agents reach the node agents.
	Agents Agents
	// Streams are the open consoles.
	Streams *Streams
	// Reach reports whether the API server answers.
	Reach func(context.Context) error
	// Log gets one line per verb.
	Log logr.Logger
}

// Reviewer answers access reviews: nil if allowed, a reason if not, or why it can't say.
type Reviewer interface {
	Review(ctx context.Context, spec authorization.SubjectAccessReviewSpec) (allowed bool, reason string, err error)
}

// ServeHTTP answers in the order public paths, authentication (401), the path's form (400), access review (403), routes
// (404, 405), verb. So a caller without rights learns nothing, not even what is served.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p, ok := public(r); ok {
		p(s, w, r)
		return
	}
	if err := s.serve(w, r); err != nil {
		writeError(w, err)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	who, err := s.authenticate(r)
	if err != nil {
		return err
	}
	spec, err := review(r, who)
	if err != nil {
		return err
	}
	if err := s.authorize(r.Context(), spec); err != nil {
		return err
	}
	route, err := find(spec, r)
	if err != nil {
		return err
	}
	t := Target{Namespace: spec.ResourceAttributes.Namespace, Name: spec.ResourceAttributes.Name}
	err = route.serve(s, w, from(r, who), t)
	s.Log.Info("served", "verb", route.Name(), "namespace", t.Namespace, "name", t.Name,
		"user", who.GetName(), "error", err)
	return err
}

// Target is the object of a request.
type Target struct{ Namespace, Name string }

// vm reads the VM of the target.
func (s *Server) vm(ctx context.Context, t Target) (*v1.VirtualMachine, error) {
	vm := &v1.VirtualMachine{}
	err := s.Kube.Get(ctx, client.ObjectKey(t), vm)
	return vm, named(err, "virtualmachine", t.Name)
}

// vmi reads the VMI of the target.
func (s *Server) vmi(ctx context.Context, t Target) (*v1.VirtualMachineInstance, error) {
	vmi := &v1.VirtualMachineInstance{}
	err := s.Kube.Get(ctx, client.ObjectKey(t), vmi)
	return vmi, named(err, "virtualmachineinstance", t.Name)
}
