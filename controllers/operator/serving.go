package operator

import (
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"virtstack.io/virtstack/controllers/operator/plan"
	"virtstack.io/virtstack/kube/release"
)

// apis are the API services of the target.
func (r *round) apis() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(r.stages[plan.Registrations]), func(o *unstructured.Unstructured) bool { return o.GetKind() != "APIService" })
}

// observeRegistrations looks whether the server of what was registered before answers, where a stage before that of the
// registrations isn't ready.
func (c *Controller) observeRegistrations(ctx context.Context, r *round) error {
	last := r.seen.Stages[len(r.seen.Stages)-1]
	if last.Ready() || last.Stage >= plan.Registrations || r.kv.Status.ObservedDeploymentID == "" {
		return nil
	}
	missing := false
	for _, o := range r.apis() {
		ref := release.RefOf(o)
		live, err := c.read(ctx, ref)
		if err != nil {
			return err
		}
		is := plan.Registration{Object: ref.String(), Missing: live == nil}
		if live != nil {
			if is.Away, err = away(live); err != nil {
				return err
			}
		}
		missing = missing || is.Missing
		r.seen.Registrations = append(r.seen.Registrations, is)
	}
	if !missing {
		return nil
	}
	var err error
	r.seen.Served, err = c.served(ctx, r)
	return err
}

// served tells whether virt-api is the one that is wanted, and ready.
func (c *Controller) served(ctx context.Context, r *round) (bool, error) {
	to := c.releaser(r.kv)
	changes, err := to.Check(ctx, r.stages[plan.API])
	if err != nil || !changes.Empty() {
		return false, nil // the stage says why
	}
	waiting, _, err := c.health(ctx, to, r.stages[plan.API])
	return waiting == "", err
}

// away is since when an API service isn't available, zero if it is or nobody has looked yet.
func away(live *unstructured.Unstructured) (time.Time, error) {
	var s struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &s); err != nil {
		return time.Time{}, fmt.Errorf("reading %s: %w", release.RefOf(live), err)
	}
	if c := apimeta.FindStatusCondition(s.Status.Conditions, "Available"); c != nil && c.Status == metav1.ConditionFalse {
		return c.LastTransitionTime.Time, nil
	}
	return time.Time{}, nil
}

// withdraw removes API services that are named as in a plan.
func (c *Controller) withdraw(ctx context.Context, r *round, named []string) error {
	var refs []release.Ref
	for _, o := range r.apis() {
		if ref := release.RefOf(o); slices.Contains(named, ref.String()) {
			refs = append(refs, ref)
		}
	}
	_, err := c.releaser(r.kv).Remove(ctx, refs)
	return err
}

// register brings all API services about.
func (c *Controller) register(ctx context.Context, r *round) error {
	to := c.releaser(r.kv)
	changes, err := to.Check(ctx, r.apis())
	if err != nil {
		return err
	}
	return to.Apply(ctx, changes)
}
