package virtctl

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"virtstack.io/virtstack/gitops/plan"
	"virtstack.io/virtstack/gitops/policy"
	"virtstack.io/virtstack/virtctl/schema"
)

// policed judges changes by policies.
type policed struct {
	set *policy.Set
	// inForce: the policies hold where the plan is for. Those of this release may not: of them only what is newly broken is told.
	inForce    bool
	by         asker
	namespaces map[string]*corev1.Namespace
}

// policies are those of --policies or among the manifests; without either, those of this release.
func (p planning) policed(ctx context.Context, in plan.Input, namespace string) (policed, error) {
	var all []manifest
	bound := len(p.policies.kustomizations) > 0
	for _, o := range in.To.Objects {
		all = append(all, manifest{file: o.File, object: o.Unstructured})
		bound = bound || o.GetKind() == "ValidatingAdmissionPolicyBinding"
	}
	by := policed{inForce: bound, by: asker{cmp.Or(namespace, "default"), p.user}, namespaces: namespacesOf(all)}
	var err error
	switch {
	case bound && len(p.policies.kustomizations) == 0:
		by.set, err = policy.Read(objectsOf(all))
	default:
		by.set, err = policiesOf(ctx, p.policies, all)
	}
	return by, err
}

func objectsOf(all []manifest) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, m := range all {
		out = append(out, m.object)
	}
	return out
}

// judge notes the policies that the changes of a plan break.
func (p policed) judge(ctx context.Context, in plan.Input) error {
	if p.set.Len() == 0 {
		return nil
	}
	before, after := map[string]*plan.Object{}, map[string]bool{}
	for n := range in.From.Objects {
		before[identity(in.From.Objects[n])] = &in.From.Objects[n]
	}
	for n := range in.To.Objects {
		o := &in.To.Objects[n]
		after[identity(*o)] = true
		was := plan.Object{}
		if b := before[identity(*o)]; b != nil {
			was = *b
		}
		if err := p.judgeOne(ctx, o, o.Unstructured, was.Unstructured); err != nil {
			return err
		}
	}
	for n := range in.From.Objects {
		if o := &in.From.Objects[n]; !after[identity(*o)] {
			if err := p.judgeOne(ctx, o, nil, o.Unstructured); err != nil {
				return err
			}
		}
	}
	return nil
}

// judgeOne notes in o what there is against a change.
func (p policed) judgeOne(ctx context.Context, o *plan.Object, want, is *unstructured.Unstructured) error {
	if same, err := equal(is, want); err != nil || same {
		return err
	}
	found, err := p.ask(ctx, want, is)
	if err != nil {
		return err
	}
	var old []policy.Finding
	if is != nil && want != nil && !p.inForce {
		if old, err = p.ask(ctx, is, nil); err != nil {
			return err
		}
	}
	for _, f := range found {
		if !slices.ContainsFunc(old, func(g policy.Finding) bool { return f.Policy == g.Policy && f.Message == g.Message }) {
			o.Policies = append(o.Policies, plan.Broken{Policy: f.Policy, Message: f.Message, Refuses: p.inForce && !f.Warning})
		}
	}
	return nil
}

func equal(a, b *unstructured.Unstructured) (bool, error) {
	if a == nil || b == nil {
		return false, nil
	}
	x, err := schema.JSON(a)
	if err != nil {
		return false, fmt.Errorf("writing %s: %w", manifest{object: a}, err)
	}
	y, err := schema.JSON(b)
	if err != nil {
		return false, fmt.Errorf("writing %s: %w", manifest{object: b}, err)
	}
	return bytes.Equal(x, y), nil
}

func (p policed) ask(ctx context.Context, want, is *unstructured.Unstructured) ([]policy.Finding, error) {
	r := policy.Request{User: p.by.user}
	for _, o := range []struct {
		from *unstructured.Unstructured
		to   **unstructured.Unstructured
	}{{want, &r.Object}, {is, &r.Old}} {
		if o.from == nil {
			continue
		}
		*o.to = p.by.sent(o.from)
		r.Namespace = p.namespaces[(*o.to).GetNamespace()]
	}
	return p.set.Judge(ctx, r)
}
