package release

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var (
	maps      = schema.GroupResource{Resource: "configmaps"}
	mapKind   = schema.GroupKind{Kind: "ConfigMap"}
	overload  = apierrors.NewTooManyRequests("slow down", 1)
	forbidden = apierrors.NewForbidden(maps, "x", errors.New("a policy says no"))
)

func TestOnlyAnswersAboutTheObjectAreRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"invalid":           {apierrors.NewInvalid(mapKind, "x", nil), true},
		"bad request":       {apierrors.NewBadRequest("no such field"), true},
		"forbidden":         {forbidden, true},
		"no such namespace": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "x"), true},
		"too large":         {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"unknown kind":      {&meta.NoKindMatchError{GroupKind: mapKind}, true},
		"another owner":     {ErrOwned, true},
		"no such field":     {apierrors.NewInternalError(errors.New("failed to create typed patch object (v1; V): .spec.x: field not declared in schema")), true},
		"overload":          {overload, false},
		"timeout":           {apierrors.NewTimeoutError("etcd", 1), false},
		"server timeout":    {apierrors.NewServerTimeout(maps, "patch", 1), false},
		"webhook is away":   {apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		"no server":         {apierrors.NewServiceUnavailable("starting"), false},
		"token has expired": {apierrors.NewUnauthorized("Unauthorized"), false},
		"conflict":          {apierrors.NewConflict(maps, "x", errors.New("modified")), false},
		"no connection":     {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, false},
		"deadline":          {context.DeadlineExceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refuses(cause(tc.err)); got != tc.want {
				t.Errorf("%v is a refusal: got %t, want %t", tc.err, got, tc.want)
			}
		})
	}
}

// answering returns a Releaser whose API server answers every write of an object with the error of its name.
func answering(answers map[string]error) *Releaser {
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return answers[o.GetName()]
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return answers["applied"]
		},
	}).Build()
	return New(c, "test", Owner{Group: "example.com", Namespace: "ns", Name: "owner"})
}

func configMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": name},
	}}
}

func TestARefusalHidesNoHiccupAndTheReverse(t *testing.T) {
	r := answering(map[string]error{"bad": forbidden, "slow": overload})
	_, err := r.Check(t.Context(), []*unstructured.Unstructured{configMap("bad"), configMap("slow")})
	var refused Refusals
	if !errors.As(err, &refused) || len(refused) != 1 || refused[0].Object.Name != "bad" {
		t.Errorf("one object is refused and one not answered for: got %v", err)
	}
	_, err = r.Check(t.Context(), []*unstructured.Unstructured{configMap("good"), configMap("slow")})
	var unanswered *Unanswered
	if errors.As(err, &refused) || !errors.As(err, &unanswered) || unanswered.Object.Name != "slow" || !apierrors.IsTooManyRequests(err) {
		t.Errorf("one object is not answered for: got %v", err)
	}
	if !strings.Contains(err.Error(), "ConfigMap ns/slow") || !strings.Contains(err.Error(), "slow down") || !strings.Contains(err.Error(), "trying again") {
		t.Errorf("the message names no object, cause or what is done: %v", err)
	}
}

func TestAWriteThatFailsForNowIsNoRefusal(t *testing.T) {
	for name, tc := range map[string]struct {
		answer  error
		refused bool
	}{"timeout": {apierrors.NewTimeoutError("etcd", 1), false}, "forbidden": {forbidden, true}} {
		t.Run(name, func(t *testing.T) {
			r := answering(map[string]error{"applied": tc.answer})
			err := r.Apply(t.Context(), Changes{write: []*unstructured.Unstructured{configMap("one")}})
			var refused Refusals
			if got := errors.As(err, &refused); err == nil || got != tc.refused {
				t.Errorf("refused: got %t (%v), want %t", got, err, tc.refused)
			}
		})
	}
}
