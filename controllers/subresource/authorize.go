package subresource

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verbs are the RBAC verbs of the methods.
var verbs = map[string]string{
	http.MethodGet:    "get",
	http.MethodPut:    "update",
	http.MethodPost:   "create",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// review returns the access review of a request: exactly the resource and the subresource of its URL, however deep.
// (Kubernetes' own request info keeps one segment of a subresource, so that a right on a/b would be asked as one on a.)
// Whatever isn't a resource is reviewed by its path.
func review(r *http.Request, who user.Info) (authorization.SubjectAccessReviewSpec, error) {
	spec := authorization.SubjectAccessReviewSpec{User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: map[string]authorization.ExtraValue{}}
	for k, v := range who.GetExtra() {
		spec.Extra[k] = v
	}
	segments, err := split(r)
	if err != nil {
		return spec, err
	}
	verb, ok := verbs[r.Method]
	if !ok {
		return spec, apierrors.NewMethodNotSupported(schema.GroupResource{Group: group}, r.Method)
	}
	if a := attributes(segments); a != nil {
		a.Verb = verb
		if verb == "get" && a.Name == "" {
			a.Verb = "list"
		}
		spec.ResourceAttributes = a
		return spec, nil
	}
	spec.NonResourceAttributes = &authorization.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
	return spec, nil
}

// attributes reads /apis/<group>/<version>[/namespaces/<namespace>]/<resource>[/<name>[/<subresource>...]].
func attributes(segments []string) *authorization.ResourceAttributes {
	if len(segments) < 4 || segments[0] != "apis" || segments[1] != group {
		return nil
	}
	a := &authorization.ResourceAttributes{Group: group, Version: segments[2]}
	rest := segments[3:]
	if rest[0] == "namespaces" && len(rest) > 2 {
		a.Namespace, rest = rest[1], rest[2:]
	}
	a.Resource = rest[0]
	if len(rest) > 1 {
		a.Name = rest[1]
		a.Subresource = strings.Join(rest[2:], "/")
	}
	return a
}

// split returns the path's segments. An encoded one could mean one thing here and another elsewhere: it is refused.
func split(r *http.Request) ([]string, error) {
	segments := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	for _, s := range segments {
		if s == "" || len(content.IsPathSegmentName(s)) > 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("path segment %q: not a plain name", s))
		}
	}
	return segments, nil
}

func (s *Server) authorize(ctx context.Context, spec authorization.SubjectAccessReviewSpec) error {
	allowed, reason, err := s.Reviewer.Review(ctx, spec)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("reviewing access: %w", err))
	}
	if allowed {
		return nil
	}
	return forbidden(spec, reason)
}

// forbidden says what the API server itself would say.
func forbidden(spec authorization.SubjectAccessReviewSpec, reason string) error {
	if reason != "" {
		reason = ": " + reason
	}
	if n := spec.NonResourceAttributes; n != nil {
		text := fmt.Sprintf("User %q cannot %s path %q%s", spec.User, n.Verb, n.Path, reason)
		return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(text))
	}
	a := spec.ResourceAttributes
	resource := strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")
	where := "at the cluster scope"
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	text := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s%s", spec.User, a.Verb, resource, group, where, reason)
	return apierrors.NewForbidden(schema.GroupResource{Group: group, Resource: a.Resource}, a.Name, errors.New(text))
}

// ClusterReviewer asks the API server each time: a right that was taken away is gone at once.
type ClusterReviewer struct{ Kube kubernetes.Interface }

// Review implements Reviewer.
func (c ClusterReviewer) Review(ctx context.Context, spec authorization.SubjectAccessReviewSpec) (bool, string, error) {
	sar := &authorization.SubjectAccessReview{Spec: spec}
	sar, err := c.Kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, sar, metav1.CreateOptions{})
	if err != nil {
		return false, "", err
	}
	if sar.Status.EvaluationError != "" && !sar.Status.Allowed && sar.Status.Reason == "" {
		return false, "", errors.New(sar.Status.EvaluationError)
	}
	return sar.Status.Allowed && !sar.Status.Denied, sar.Status.Reason, nil
}
