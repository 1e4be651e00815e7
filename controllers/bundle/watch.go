package bundle

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	watch "sigs.k8s.io/controller-runtime/pkg/source"

	"virtstack.io/virtstack/api/v1alpha1"
)

// lookForFlux is how often it is looked whether the kinds of Flux have come.
const lookForFlux = 30 * time.Second

// watcher makes a new artifact of a source wake the Bundles that name the source. Flux may come later than we do, or
// never: only what the API server has is watched.
type watcher struct {
	mgr        ctrl.Manager
	controller controller.Controller
	bundles    client.Reader
	every      time.Duration
}

// Start watches each kind once it is there, until the process ends.
func (w *watcher) Start(ctx context.Context) error {
	left := []v1alpha1.SourceKind{v1alpha1.GitRepository, v1alpha1.OCIRepository, v1alpha1.Bucket, v1alpha1.ExternalArtifact}
	err := wait.PollUntilContextCancel(ctx, w.every, true, func(context.Context) (bool, error) {
		var missing []v1alpha1.SourceKind
		for _, kind := range left {
			there, err := w.watch(kind)
			if err != nil {
				ctrl.LoggerFrom(ctx).Info("looking again for the sources of Flux", "kind", kind, "because", err.Error())
			}
			if !there {
				missing = append(missing, kind)
			}
		}
		left = missing
		return len(left) == 0, nil
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// watch reports whether the kind is there, and so watched from now on.
func (w *watcher) watch(kind v1alpha1.SourceKind) (bool, error) {
	gvk := fluxSources.WithKind(string(kind))
	_, err := w.mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	wakes := handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, o *unstructured.Unstructured) []reconcile.Request {
		return w.named(ctx, kind, client.ObjectKeyFromObject(o))
	})
	err = w.controller.Watch(watch.Kind(w.mgr.GetCache(), fluxSource(kind), wakes, newArtifact()))
	return err == nil, err
}

// named returns the Bundles that name a source.
func (w *watcher) named(ctx context.Context, kind v1alpha1.SourceKind, key client.ObjectKey) []reconcile.Request {
	var all v1alpha1.BundleList
	if err := w.bundles.List(ctx, &all); err != nil {
		return nil // each looks for itself after its interval
	}
	var out []reconcile.Request
	for i := range all.Items {
		b := &all.Items[i]
		if ref := b.Spec.Source.SourceRef; ref != nil && ref.Kind == kind && sourceKey(b) == key {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return out
}

// newArtifact lets through what changes the artifact.
func newArtifact() predicate.TypedPredicate[*unstructured.Unstructured] {
	digest := func(o *unstructured.Unstructured) string {
		revision, _, _ := unstructured.NestedString(o.Object, "status", "artifact", "revision") // of another type: none
		digest, _, _ := unstructured.NestedString(o.Object, "status", "artifact", "digest")
		return revision + " " + digest
	}
	return predicate.TypedFuncs[*unstructured.Unstructured]{
		UpdateFunc: func(e event.TypedUpdateEvent[*unstructured.Unstructured]) bool {
			return digest(e.ObjectOld) != digest(e.ObjectNew)
		},
	}
}
