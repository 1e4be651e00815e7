package loop

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Requests returns a round for each of a list's objects, in its order; nil for none.
func Requests[T any, P interface {
	*T
	client.Object
}](items []T) []reconcile.Request {
	var all []reconcile.Request
	for i := range items {
		all = append(all, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(P(&items[i]))})
	}
	return all
}
