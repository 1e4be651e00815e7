package bundle

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
)

// dependents are the Bundles that wait for another one. If they can't be listed, the next look of theirs finds out.
func dependents(all client.Reader) func(context.Context, client.Object) []reconcile.Request {
	return func(ctx context.Context, of client.Object) (woken []reconcile.Request) {
		var list v1alpha1.BundleList
		if err := all.List(ctx, &list, client.InNamespace(of.GetNamespace())); err != nil {
			return nil
		}
		for i := range list.Items {
			b := &list.Items[i]
			for _, d := range b.Spec.DependsOn {
				if d.Name == of.GetName() {
					woken = append(woken, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
				}
			}
		}
		return woken
	}
}

// readiness lets through what makes a Bundle ready to depend on, or no longer.
func readiness() predicate.Predicate {
	always := predicate.NewPredicateFuncs(func(client.Object) bool { return true })
	always.UpdateFunc = func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*v1alpha1.Bundle)
		after, same := e.ObjectNew.(*v1alpha1.Bundle)
		return ok && same && plan.Unready(before) != plan.Unready(after)
	}
	return always
}
