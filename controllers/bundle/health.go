package bundle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/kube/release"
)

// judgement is how long one object's expressions may take.
const judgement = time.Second

// judges are what the Bundle's expressions say of kinds.
func judges(b *v1alpha1.Bundle) (map[schema.GroupKind]release.Judge, *plan.Failure) {
	all := map[schema.GroupKind]release.Judge{}
	for i, c := range b.Spec.HealthCheckExprs {
		field := fmt.Sprintf("spec.healthCheckExprs[%d]", i)
		e, err := cel.NewStatusEvaluator(&c.HealthCheckExpressions)
		if err != nil {
			message := field + ": " + strings.Join(strings.Fields(err.Error()), " ")
			return nil, &plan.Failure{Reason: plan.HealthCheckInvalid, Message: message, Final: true}
		}
		kind := schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind()
		if all[kind] != nil {
			return nil, &plan.Failure{Reason: plan.HealthCheckInvalid, Message: fmt.Sprintf("%s: %s has expressions already: one entry per group and kind", field, kind), Final: true}
		}
		all[kind] = judge(field, e)
	}
	return all, nil
}

func judge(field string, e *cel.StatusEvaluator) release.Judge {
	return func(ctx context.Context, u *unstructured.Unstructured) (failed bool, message string) {
		ctx, cancel := context.WithTimeout(ctx, judgement)
		defer cancel()
		result, err := e.Evaluate(ctx, u)
		switch {
		case err != nil && u.GetKind() == "Secret":
			return false, field + ": the expressions can't be evaluated"
		case err != nil:
			return false, field + ": " + err.Error()
		case result.Status == status.FailedStatus:
			return true, "failed, by " + field + ".failed"
		case result.Status == status.CurrentStatus:
			return false, ""
		}
		return false, "in progress, by " + field
	}
}

// judged are the objects whose health is waited for.
func (r *round) judged() []release.Ref {
	var refs []release.Ref
	if plan.Waits(r.bundle) {
		refs = release.Refs(unwrap(r.objects))
	}
	for _, c := range r.bundle.Spec.HealthChecks {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(c.APIVersion)
		u.SetKind(c.Kind)
		u.SetName(c.Name)
		u.SetNamespace(c.Namespace)
		if namespaced, err := r.client.IsObjectNamespaced(u); c.Namespace == "" && err == nil && namespaced {
			u.SetNamespace(r.bundle.Namespace)
		}
		refs = append(refs, release.RefOf(u))
	}
	return release.Sorted(refs)
}

// observeHealth returns what is waited for.
func (r *round) observeHealth(ctx context.Context) []release.Health {
	unhealthy := r.releaser.Health(ctx, r.judged())
	r.seen.Waiting = release.List(unhealthy)
	r.seen.Failed = slices.ContainsFunc(unhealthy, func(h release.Health) bool { return h.Failed })
	return unhealthy
}
