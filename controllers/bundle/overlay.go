package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/source"
)

// errVariables is of variables that can't be read now.
var errVariables = errors.New("spec.postBuild.substituteFrom")

// overlay returns what the Bundle lays over its kustomization.
func (r *round) overlay(ctx context.Context) (build.Overlay, error) {
	s := r.bundle.Spec
	o := build.Overlay{
		Namespace: s.TargetNamespace, NamePrefix: s.NamePrefix, NameSuffix: s.NameSuffix,
		Components: s.Components, IgnoreMissingComponents: s.IgnoreMissingComponents,
		Bases: build.Bases{Allowed: r.bases, Fetch: func(url, commit string) (build.Base, error) { return source.Pinned(ctx, url, commit) }},
	}
	for _, p := range s.Patches {
		o.Patches = append(o.Patches, types.Patch{Patch: p.Patch, Target: selector(p.Target)})
	}
	for _, i := range s.Images {
		o.Images = append(o.Images, types.Image{Name: i.Name, NewName: i.NewName, NewTag: i.NewTag, Digest: i.Digest})
	}
	if s.PostBuild == nil {
		return o, nil
	}
	var err error
	o.Variables, err = r.variables(ctx, s.PostBuild)
	return o, err
}

func selector(s *kustomize.Selector) *types.Selector {
	if s == nil {
		return nil
	}
	id := resid.ResId{Gvk: resid.Gvk{Group: s.Group, Version: s.Version, Kind: s.Kind}, Name: s.Name, Namespace: s.Namespace}
	return &types.Selector{ResId: id, AnnotationSelector: s.AnnotationSelector, LabelSelector: s.LabelSelector}
}

// variables reads, with the account's rights, what ${name} stands for. No value has a newline.
func (r *round) variables(ctx context.Context, p *v1alpha1.PostBuild) (build.Variables, error) {
	v := build.Variables{Values: map[string]string{}, Always: p.SubstituteStrategy == v1alpha1.SubstituteAlways, Strict: p.Strict}
	for i, from := range p.SubstituteFrom {
		data, err := r.values(ctx, from)
		if apierrors.IsNotFound(err) && from.Optional {
			continue
		}
		if err != nil {
			return v, fmt.Errorf("%w[%d]: reading %s %s: %w", errVariables, i, from.Kind, from.Name, err)
		}
		for name, value := range data {
			v.Values[name] = strings.ReplaceAll(value, "\n", "")
			if from.Kind == "Secret" {
				v.Secrets = append(v.Secrets, value, v.Values[name])
			}
		}
	}
	for name, value := range p.Substitute {
		v.Values[name] = strings.ReplaceAll(value, "\n", "")
	}
	return v, nil
}

func (r *round) values(ctx context.Context, from v1alpha1.SubstituteReference) (map[string]string, error) {
	meta := metav1.ObjectMeta{Namespace: r.bundle.Namespace, Name: from.Name}
	if from.Kind == "ConfigMap" {
		m := &corev1.ConfigMap{ObjectMeta: meta}
		err := r.client.Get(ctx, client.ObjectKeyFromObject(m), m)
		return m.Data, err
	}
	s := &corev1.Secret{ObjectMeta: meta}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(s), s)
	values := map[string]string{}
	for name, value := range s.Data {
		values[name] = string(value)
	}
	return values, err
}

// digest tells variables apart without keeping them.
func digest(v build.Variables) string {
	data, _ := json.Marshal(v.Values) // strings only: it never fails, and the order is that of the names
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
