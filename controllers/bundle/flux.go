package bundle

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/gitops/source"
)

// fluxSources is the API that the sources of Flux are read in.
var fluxSources = schema.GroupVersion{Group: "source.toolkit.fluxcd.io", Version: "v1"}

// errElsewhere says that the source is in another namespace. It is a refusal.
var errElsewhere = fmt.Errorf("%w: it must be in the Bundle's namespace, unless virt-bundles runs with --no-cross-namespace-refs=false", source.ErrRefused)

// artifact reads what a source of Flux has, with the account's own rights.
func (r *round) artifact(ctx context.Context, ref *v1alpha1.SourceReference, known built) (from source.Source, trust string, err error) {
	key := sourceKey(r.bundle)
	name := fmt.Sprintf("%s %s", ref.Kind, key)
	if key.Namespace != r.bundle.Namespace && !r.anywhere {
		return nil, "", fmt.Errorf("spec.source.sourceRef.namespace: %s: %w", name, errElsewhere)
	}
	o := fluxSource(ref.Kind)
	if err := r.client.Get(ctx, key, o); err != nil {
		return nil, "", fmt.Errorf("spec.source.sourceRef: reading %s as account %s: %w", name, accountOf(r.bundle), unserved(err, ref.Kind))
	}
	a := source.Artifact{Of: name, Limits: source.DefaultLimits}
	for field, into := range map[string]*string{"url": &a.URL, "digest": &a.Digest, "revision": &a.Revision} {
		*into, _, _ = unstructured.NestedString(o.Object, "status", "artifact", field) // of another type: none
	}
	if a.URL == "" || a.Revision == "" {
		return nil, "", fmt.Errorf("spec.source.sourceRef: %s has no artifact yet%s", name, whyNot(o))
	}
	if a.Digest == known.trust {
		a.Known = known.revision
	}
	return a, a.Digest, nil
}

func fluxSource(kind v1alpha1.SourceKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(fluxSources.WithKind(string(kind)))
	return o
}

// sourceKey is where the source of a Bundle is that names one.
func sourceKey(b *v1alpha1.Bundle) client.ObjectKey {
	key := client.ObjectKey{Namespace: b.Spec.Source.SourceRef.Namespace, Name: b.Spec.Source.SourceRef.Name}
	if key.Namespace == "" {
		key.Namespace = b.Namespace
	}
	return key
}

func unserved(err error, kind v1alpha1.SourceKind) error {
	if meta.IsNoMatchError(err) {
		return errors.New("the cluster has no such kind: " + fluxSources.WithKind(string(kind)).String() + " comes with Flux")
	}
	return err
}

// whyNot is what the source itself says about that.
func whyNot(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // of another type: none
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" && m["status"] != "True" {
			return fmt.Sprintf(": %.500v", m["message"])
		}
	}
	return ""
}
