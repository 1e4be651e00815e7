package policy

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Request is what is to be judged: Object is created if Old is nil, Old is deleted if Object is nil, and otherwise Old
// becomes Object.
type Request struct {
	Object, Old *unstructured.Unstructured
	User        string            // who asks; policies may let some through
	Namespace   *corev1.Namespace // the object's, if its labels are known
}

// Finding is what a policy says against a request.
type Finding struct {
	Policy  string
	Message string
	Warning bool // the binding doesn't deny, it warns or audits only
}

// Judge returns what the policies have against a request, in the order of their bindings. A policy that selects
// namespaces is held to match one whose labels aren't known.
func (s *Set) Judge(ctx context.Context, r Request) ([]Finding, error) {
	var found []Finding
	for _, rule := range s.rules {
		of, err := rule.judge(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("judging by ValidatingAdmissionPolicyBinding %s: %w", rule.binding.Name, err)
		}
		found = append(found, of...)
	}
	return found, nil
}

func (r rule) judge(ctx context.Context, req Request) ([]Finding, error) {
	attributes := req.attributes()
	for _, m := range []*admissionv1.MatchResources{r.policy.Spec.MatchConstraints, r.binding.Spec.MatchResources} {
		if match, err := matches(m, req, attributes); err != nil || !match {
			return nil, err
		}
	}
	denies := slices.Contains(r.binding.Spec.ValidationActions, admissionv1.Deny)
	params := make([]runtime.Object, 0, len(r.params))
	for _, p := range r.params {
		params = append(params, p)
	}
	if len(params) == 0 && r.policy.Spec.ParamKind != nil {
		ref := r.binding.Spec.ParamRef
		if ref != nil && (ref.ParameterNotFoundAction == nil || *ref.ParameterNotFoundAction == admissionv1.AllowAction) {
			return nil, nil
		}
		return []Finding{{Policy: r.policy.Name, Message: "its parameters are not there: give them along with the policy", Warning: !denies}}, nil
	}
	if len(params) == 0 {
		params = append(params, nil)
	}
	var found []Finding
	for _, p := range params {
		result := r.validator.Validate(ctx, attributes.GetResource(), attributes, p, req.Namespace, celconfig.RuntimeCELCostBudget, nil)
		for _, d := range result.Decisions {
			if d.Action == validating.ActionDeny {
				found = append(found, Finding{Policy: r.policy.Name, Message: d.Message, Warning: !denies})
			}
		}
	}
	return found, nil
}

func (r Request) attributes() *admission.VersionedAttributes {
	subject, operation := r.Object, admission.Update
	switch {
	case r.Object == nil:
		subject, operation = r.Old, admission.Delete
	case r.Old == nil:
		operation = admission.Create
	}
	kind := subject.GroupVersionKind()
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	object, old := object(r.Object), object(r.Old)
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(object, old, kind, subject.GetNamespace(), subject.GetName(), resource, "",
			operation, nil, false, &user.DefaultInfo{Name: r.User}),
		VersionedKind:      kind,
		VersionedObject:    admission.NewLazyObject(object),
		VersionedOldObject: admission.NewLazyObject(old),
	}
}

// object keeps a nil a nil: an interface that holds a nil pointer is none.
func object(o *unstructured.Unstructured) runtime.Object {
	if o == nil {
		return nil
	}
	return o
}

func matches(m *admissionv1.MatchResources, r Request, a admission.Attributes) (bool, error) {
	if m == nil {
		return true, nil
	}
	is := func(n admissionv1.NamedRuleWithOperations) bool {
		matcher := rules.Matcher{Rule: n.RuleWithOperations, Attr: a}
		return matcher.Matches() && (len(n.ResourceNames) == 0 || slices.Contains(n.ResourceNames, a.GetName()))
	}
	if len(m.ResourceRules) > 0 && !slices.ContainsFunc(m.ResourceRules, is) || slices.ContainsFunc(m.ExcludeResourceRules, is) {
		return false, nil
	}
	if r.Namespace != nil {
		if match, err := selects(m.NamespaceSelector, r.Namespace.Labels); err != nil || !match {
			return false, err
		}
	}
	for _, o := range []*unstructured.Unstructured{r.Object, r.Old} {
		if o == nil {
			continue
		}
		if match, err := selects(m.ObjectSelector, o.GetLabels()); err != nil || match {
			return match, err
		}
	}
	return false, nil
}

// selects tells whether a selector matches labels; none matches all.
func selects(s *metav1.LabelSelector, of map[string]string) (bool, error) {
	if s == nil {
		return true, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return false, fmt.Errorf("reading a selector: %w", err)
	}
	return selector.Matches(labels.Set(of)), nil
}
