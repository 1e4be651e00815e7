// Package policy judges objects by ValidatingAdmissionPolicies as the API server does, without one: the expressions are
// compiled and run by the API server's own code.
package policy

import (
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Set is a number of policies that are bound, each with its parameters.
type Set struct {
	rules []rule
}

// rule is a policy by one of its bindings.
type rule struct {
	policy    *admissionv1.ValidatingAdmissionPolicy
	binding   *admissionv1.ValidatingAdmissionPolicyBinding
	validator validating.Validator
	params    []*unstructured.Unstructured // none: the policy has no parameters, or none was found
}

// Read finds policies, their bindings and the objects that are their parameters among objects; others are left alone. A
// policy without a binding judges nothing. The error names every policy whose expressions don't compile, and every
// binding that can't be understood.
func Read(objects []*unstructured.Unstructured) (*Set, error) {
	policies := map[string]*admissionv1.ValidatingAdmissionPolicy{}
	validators := map[string]validating.Validator{}
	var errs []error
	for _, o := range objects {
		if o.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		p := &admissionv1.ValidatingAdmissionPolicy{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, p); err != nil {
			errs = append(errs, fmt.Errorf("reading ValidatingAdmissionPolicy %s: %w", o.GetName(), err))
			continue
		}
		v, err := compiled(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("compiling ValidatingAdmissionPolicy %s: %w", p.Name, err))
		}
		policies[p.Name], validators[p.Name] = p, v
	}
	s := &Set{}
	for _, o := range objects {
		if o.GetKind() != "ValidatingAdmissionPolicyBinding" {
			continue
		}
		b := &admissionv1.ValidatingAdmissionPolicyBinding{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, b); err != nil {
			errs = append(errs, fmt.Errorf("reading ValidatingAdmissionPolicyBinding %s: %w", o.GetName(), err))
			continue
		}
		p := policies[b.Spec.PolicyName]
		if p == nil {
			errs = append(errs, fmt.Errorf("ValidatingAdmissionPolicyBinding %s: spec.policyName: Not found: %q", b.Name, b.Spec.PolicyName))
			continue
		}
		params, err := parameters(p, b, objects)
		if err != nil {
			errs = append(errs, err)
		}
		s.rules = append(s.rules, rule{p, b, validators[p.Name], params})
	}
	return s, errors.Join(errs...)
}

// Len is the number of bindings.
func (s *Set) Len() int { return len(s.rules) }

// parameters returns the objects that a binding refers to.
func parameters(p *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	kind, ref := p.Spec.ParamKind, b.Spec.ParamRef
	if kind == nil || ref == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
	if err != nil {
		return nil, fmt.Errorf("ValidatingAdmissionPolicyBinding %s: spec.paramRef.selector: %w", b.Name, err)
	}
	var found []*unstructured.Unstructured
	for _, o := range objects {
		named := ref.Name != "" && o.GetName() == ref.Name || ref.Selector != nil && selector.Matches(labels.Set(o.GetLabels()))
		here := ref.Namespace == "" || o.GetNamespace() == ref.Namespace
		if o.GetAPIVersion() == kind.APIVersion && o.GetKind() == kind.Kind && named && here {
			found = append(found, o)
		}
	}
	return found, nil
}

// compiled compiles a policy as the API server does when it is stored.
func compiled(p *admissionv1.ValidatingAdmissionPolicy) (validating.Validator, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	params := p.Spec.ParamKind != nil
	all, plain := cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}, cel.OptionalVariableDeclarations{HasParams: params}
	var errs []error
	for _, v := range p.Spec.Variables {
		result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, all, environment.StoredExpressions)
		if result.Error != nil {
			errs = append(errs, fmt.Errorf("variable %s: %w", v.Name, result.Error))
		}
	}
	var conditions, validations, messages, annotations []cel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		if v.MessageExpression == "" {
			messages = append(messages, nil)
			continue
		}
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	when := compiler.CompileCondition(conditions, all, environment.StoredExpressions)
	must := compiler.CompileCondition(validations, all, environment.StoredExpressions)
	say := compiler.CompileCondition(messages, plain, environment.StoredExpressions)
	var matcher matchconditions.Matcher
	if len(conditions) > 0 {
		matcher = matchconditions.NewMatcher(when, p.Spec.FailurePolicy, "policy", "validate", p.Name)
	}
	return validating.NewValidator(must, matcher, compiler.CompileCondition(annotations, all, environment.StoredExpressions), say, p.Spec.FailurePolicy, nil),
		errors.Join(slices.Concat(errs, when.CompilationErrors(), must.CompilationErrors(), say.CompilationErrors())...)
}
