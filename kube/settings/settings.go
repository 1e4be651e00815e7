// Package settings reads the configuration of an install from its KubeVirt CR.
package settings

import (
	"context"
	"fmt"

	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/machine/config"
	"virtstack.io/virtstack/machine/names"
)

// Read returns the effective configuration; without a CR, the defaults.
func Read(ctx context.Context, from client.Reader) (config.Config, error) {
	var list v1.KubeVirtList
	if err := from.List(ctx, &list, client.InNamespace(names.Namespace)); err != nil {
		return config.Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	var found *v1.KubeVirt
	for i := range list.Items {
		if kv := &list.Items[i]; found == nil || kv.Name < found.Name {
			found = kv
		}
	}
	return config.From(found), nil
}
