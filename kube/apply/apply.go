// Package apply writes to the API server by server-side apply, and only when something would change.
package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Applier applies with one field manager: one controller and kind each (writers.md).
type Applier struct {
	Client  client.Client
	Manager string
}

// Status makes the fields under .status that this manager owns exactly those of status, a pointer to the kind's
// status struct: zero values are left out, fields it owned before and no longer sets are dropped. live is the object
// as observed; nothing is sent when it shows that nothing would change. A conflict with another manager is an error
// for which apierrors.IsConflict holds.
func (a Applier) Status(ctx context.Context, live client.Object, status any) error
