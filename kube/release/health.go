package release

import (
	"context"
	"fmt"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Health is the state of one object that is not as it should be.
type Health struct {
	Object Ref
	// Failed says that it won't get there by itself.
	Failed  bool
	Message string
}

// Judge tells whether an object has failed, and what it waits for; "" if it is as it should be.
type Judge func(context.Context, *unstructured.Unstructured) (failed bool, message string)

func (h Health) String() string { return h.Object.String() + ": " + h.Message }

// Health reads the objects and returns those that are not ready, in the order of refs.
func (r *Releaser) Health(ctx context.Context, refs []Ref) []Health {
	var found []Health
	for _, ref := range refs {
		if h := r.health(ctx, ref); h.Message != "" {
			found = append(found, h)
		}
	}
	return found
}

func (r *Releaser) health(ctx context.Context, ref Ref) Health {
	u := ref.Empty()
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
		if apierrors.IsNotFound(err) {
			return Health{Object: ref, Message: "it does not exist"}
		}
		return Health{Object: ref, Message: err.Error()}
	}
	judge := r.Judges[ref.GroupKind]
	if judge == nil {
		judge = func(_ context.Context, u *unstructured.Unstructured) (bool, string) { return Of(u) }
	}
	failed, message := judge(ctx, u)
	return Health{Object: ref, Failed: failed, Message: message}
}

// Of tells whether an object has failed, and what it waits for; "" if it is as it should be. It is kstatus with the
// condition Available of the kinds that have no Ready.
func Of(u *unstructured.Unstructured) (failed bool, message string) {
	res, err := status.Compute(u)
	if err != nil {
		return false, err.Error()
	}
	switch {
	case res.Status == status.FailedStatus:
		return true, res.Message
	case res.Status != status.CurrentStatus:
		return false, res.Message
	case byAvailable[u.GroupVersionKind().GroupKind()]:
		return false, available(u)
	}
	return false, ""
}

var byAvailable = map[schema.GroupKind]bool{
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: true,
}

func available(u *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if c["type"] != "Available" {
			continue
		}
		if c["status"] == "True" {
			return ""
		}
		return fmt.Sprintf("not available: %v", c["message"])
	}
	return "not available yet"
}

// Unhealthy is nil for an empty list, else an error that names the first few.
func Unhealthy(found []Health) error {
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("waiting for %s", List(found))
}

// List names the first few of found.
func List(found []Health) string {
	const most = 3
	var s []string
	for _, h := range found[:min(len(found), most)] {
		s = append(s, h.String())
	}
	if len(found) > most {
		s = append(s, fmt.Sprintf("and %d more", len(found)-most))
	}
	return strings.Join(s, "; ")
}
