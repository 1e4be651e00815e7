package bundle

import (
	"fmt"
	"maps"

	"github.com/fluxcd/pkg/ssa/normalize"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/kube/release"
)

// use takes objects as built and makes them the Bundle's: namespace and labels.
func (r *round) use(built []build.Object) error {
	scopes := scopesOf(built)
	seen := map[string]build.Object{}
	for _, o := range built {
		o = build.Object{Unstructured: o.DeepCopy(), File: o.File}
		if err := r.place(o, scopes); err != nil {
			return fmt.Errorf("%w: %s: %w", build.ErrRefused, o, err)
		}
		if common := r.bundle.Spec.CommonMetadata; common != nil {
			utils.SetCommonMetadata([]*unstructured.Unstructured{o.Unstructured}, common.Labels, common.Annotations)
		}
		labels := maps.Clone(owner(r.bundle).Labels())
		for k, v := range o.GetLabels() {
			if _, ours := labels[k]; !ours {
				labels[k] = v
			}
		}
		o.SetLabels(labels)
		if err := normalize.Unstructured(o.Unstructured); err != nil {
			return fmt.Errorf("%w: %s: %w", build.ErrRefused, o, err)
		}
		id := release.RefOf(o.Unstructured).ID()
		if twin, ok := seen[id]; ok {
			return fmt.Errorf("%w: %s is there twice, also as %s", build.ErrRefused, o, twin)
		}
		seen[id] = o
		r.objects = append(r.objects, o)
	}
	r.seen.Wanted = entries(release.Refs(unwrap(r.objects)))
	return nil
}

// place sets the namespace: the target's, the manifest's, or the Bundle's.
func (r *round) place(o build.Object, scopes map[string]bool) error {
	namespaced, known := scopes[kind(o.GroupVersionKind().Group, o.GetKind())]
	if !known {
		var err error
		namespaced, err = r.client.IsObjectNamespaced(o.Unstructured)
		if meta.IsNoMatchError(err) {
			return nil // the dry run will say so, naming it
		}
		if err != nil {
			return err
		}
	}
	switch {
	case !namespaced:
		o.SetNamespace("")
	case r.bundle.Spec.TargetNamespace != "":
		o.SetNamespace(r.bundle.Spec.TargetNamespace)
	case o.GetNamespace() == "":
		o.SetNamespace(r.bundle.Namespace)
	}
	return nil
}

// scopesOf tells which of the kinds that the objects define themselves are namespaced.
func scopesOf(objects []build.Object) map[string]bool {
	scopes := map[string]bool{}
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		defined, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		scopes[kind(group, defined)] = scope == "Namespaced"
	}
	return scopes
}

func kind(group, kind string) string { return group + "/" + kind }

func unwrap(objects []build.Object) []*unstructured.Unstructured {
	all := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		all[i] = o.Unstructured
	}
	return all
}
