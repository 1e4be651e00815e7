package virtctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	v1 "kubevirt.io/api/core/v1"

	"virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/machine/names"
)

// live is a cluster that a plan is made for. Nothing in it is changed: what writes is a dry run.
type live struct {
	objects   dynamic.Interface
	kinds     meta.RESTMapper
	namespace string
	manager   string
}

// ask returns the plan of what the cluster has, in the place of the side before, against what it would make of the side
// after. What is only before is deleted, if it is there.
func (e *environment) ask(ctx context.Context, p planning, git plan.Input) (plan.Input, error) {
	l, err := e.live(p)
	if err != nil {
		return git, err
	}
	in := plan.Input{Live: true, Guests: map[string]*v1.VirtualMachineInstance{}, From: plan.Side{Name: "the cluster"}, To: plan.Side{Name: git.To.Name}}
	wanted := map[string]bool{}
	for _, o := range git.To.Objects {
		is, want, err := l.apply(ctx, o)
		if err != nil {
			return in, err
		}
		wanted[identity(want)] = true
		in.To.Objects = append(in.To.Objects, want)
		if is.Unstructured != nil {
			in.From.Objects = append(in.From.Objects, is)
		}
	}
	for _, o := range git.From.Objects {
		o = l.placed(o)
		if wanted[identity(o)] {
			continue
		}
		is, err := l.delete(ctx, o)
		if err != nil {
			return in, err
		}
		if is.Unstructured != nil {
			in.From.Objects = append(in.From.Objects, is)
		}
	}
	return in, l.beside(ctx, &in)
}

func (e *environment) live(p planning) (live, error) {
	config, err := e.connection.ToRESTConfig()
	if err != nil {
		return live{}, hinted(err, "no cluster to talk to: %v\nCheck --kubeconfig, --context and $KUBECONFIG.", err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // one request after the other is slow enough
	config.UserAgent = cmp.Or(config.UserAgent, "virtctl")
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return live{}, err
	}
	kinds, err := e.connection.ToRESTMapper()
	if err != nil {
		return live{}, err
	}
	namespace, _, err := e.connection.ToRawKubeConfigLoader().Namespace()
	return live{objects, kinds, namespace, p.manager}, err
}

// placed returns an object in the namespace that it gets. One of a kind that the cluster doesn't know stays.
func (l live) placed(o plan.Object) plan.Object {
	m, err := l.kinds.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil || m.Scope.Name() != meta.RESTScopeNameNamespace || o.GetNamespace() != "" {
		return o
	}
	o.Unstructured = o.DeepCopy()
	o.SetNamespace(l.namespace)
	return o
}

// resource returns where an object is; the error is a NoMatch one if the cluster doesn't know its kind.
func (l live) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	m, err := l.kinds.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return l.objects.Resource(m.Resource).Namespace(o.GetNamespace()), nil
	}
	return l.objects.Resource(m.Resource), nil
}

// apply returns an object as it is, if it is, and as it would be.
func (l live) apply(ctx context.Context, o plan.Object) (is, want plan.Object, err error) {
	o = l.placed(o)
	at, err := l.resource(o.Unstructured)
	if meta.IsNoMatchError(err) {
		o.Notes = append(o.Notes, "the cluster doesn't know this kind yet, so it wasn't asked what it would make of it")
		return is, o, nil
	}
	if err != nil {
		return is, o, fmt.Errorf("asking for the kind of %s: %w", identity(o), err)
	}
	found, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
	if other(err) != nil {
		return is, o, fmt.Errorf("reading %s: %w", identity(o), err)
	}
	manager := cmp.Or(l.manager, "virtctl")
	if err == nil {
		is = plan.Object{Unstructured: found, File: o.File}
		manager = cmp.Or(l.manager, applier(found), "virtctl")
	}
	made, err := at.Apply(ctx, o.GetName(), o.Unstructured, metav1.ApplyOptions{DryRun: []string{metav1.DryRunAll}, Force: true, FieldManager: manager})
	switch {
	case apierrors.IsNotFound(err):
		o.Notes = append(o.Notes, "its namespace isn't there yet, so the cluster wasn't asked what it would make of it")
		return is, o, nil
	case isVerdict(err):
		o.Refused = append(o.Refused, refusal(o, err))
		return is, o, nil
	case err != nil:
		return is, o, fmt.Errorf("applying %s in a dry run: %w", identity(o), err)
	}
	o.Unstructured = made
	return is, o, nil
}

// other returns nil for an object that isn't there.
func other(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isVerdict tells whether the API server has looked at what was asked, and refuses it.
func isVerdict(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsConflict(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsMethodNotSupported(err) ||
		err != nil && strings.Contains(err.Error(), names.Untyped)
}

// refusal tells why the API server refuses an object, but for Secrets: it may quote what they hold.
func refusal(o plan.Object, err error) plan.Refusal {
	if o.GetKind() == "Secret" {
		return plan.Refusal{Message: "why isn't shown, for that may quote the Secret: apply it in a dry run where only you see it"}
	}
	return plan.Refusal{Message: err.Error()}
}

// applier returns who applied an object, if one did: with another name, a field that is no longer wanted would stay.
func applier(o *unstructured.Unstructured) string {
	var all []string
	for _, f := range o.GetManagedFields() {
		if f.Operation == metav1.ManagedFieldsOperationApply && f.Subresource == "" {
			all = append(all, f.Manager)
		}
	}
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// delete returns an object that is to go, if it is there.
func (l live) delete(ctx context.Context, o plan.Object) (plan.Object, error) {
	at, err := l.resource(o.Unstructured)
	if meta.IsNoMatchError(err) {
		return plan.Object{}, nil
	}
	if err != nil {
		return plan.Object{}, fmt.Errorf("asking for the kind of %s: %w", identity(o), err)
	}
	found, err := at.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		if other(err) != nil {
			return plan.Object{}, fmt.Errorf("reading %s: %w", identity(o), err)
		}
		return plan.Object{}, nil
	}
	is := plan.Object{Unstructured: found, File: o.File}
	err = at.Delete(ctx, o.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	switch {
	case isVerdict(err):
		is.Refused = append(is.Refused, refusal(is, err))
	case other(err) != nil:
		return plan.Object{}, fmt.Errorf("deleting %s in a dry run: %w", identity(o), err)
	}
	return is, nil
}

// beside adds what VMs stand on: the KubeVirt, their instancetypes and preferences, what they keep of those, and guests.
func (l live) beside(ctx context.Context, in *plan.Input) error {
	var all []*unstructured.Unstructured
	kv := &unstructured.Unstructured{}
	kv.SetGroupVersionKind(v1.KubeVirtGroupVersionKind)
	if at, err := l.resource(kv); err == nil {
		list, err := at.List(ctx, metav1.ListOptions{})
		if err != nil && !apierrors.IsForbidden(err) {
			return fmt.Errorf("reading the KubeVirt: %w", err)
		}
		for i := range items(list) {
			all = append(all, &list.Items[i])
		}
	}
	seen := map[string]bool{}
	for _, o := range slices.Concat(in.From.Objects, in.To.Objects) {
		if o.GroupVersionKind().GroupKind() != v1.VirtualMachineGroupVersionKind.GroupKind() {
			continue
		}
		for _, ref := range plan.Beside(o) {
			found, err := l.optional(ctx, ref, seen)
			if err != nil {
				return err
			}
			if vmi := vmiIn(found); vmi != nil {
				in.Guests[vmi.Namespace+"/"+vmi.Name] = vmi
			} else if found != nil {
				all = append(all, found)
			}
		}
	}
	in.From.Beside, in.To.Beside = all, all
	return nil
}

func items(list *unstructured.UnstructuredList) []unstructured.Unstructured {
	if list == nil {
		return nil
	}
	return list.Items
}

// optional returns an object; nil if it isn't there, was returned before, or is none of the user's business.
func (l live) optional(ctx context.Context, o *unstructured.Unstructured, seen map[string]bool) (*unstructured.Unstructured, error) {
	id := identity(plan.Object{Unstructured: o})
	if seen[id] {
		return nil, nil
	}
	seen[id] = true
	at, err := l.resource(o)
	if err == nil {
		o, err = at.Get(ctx, o.GetName(), metav1.GetOptions{})
	}
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", id, err)
	}
	return o, nil
}

func vmiIn(o *unstructured.Unstructured) *v1.VirtualMachineInstance {
	if o == nil || o.GroupVersionKind().GroupKind() != v1.VirtualMachineInstanceGroupVersionKind.GroupKind() {
		return nil
	}
	vmi := &v1.VirtualMachineInstance{}
	text, err := o.MarshalJSON()
	if errors.Join(err, json.Unmarshal(text, vmi)) != nil {
		return nil
	}
	return vmi
}
