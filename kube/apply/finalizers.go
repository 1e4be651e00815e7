package apply

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Release takes finalizers off an object, whoever put them there. Where the object has changed since it was seen, the
// error is one for which apierrors.IsConflict holds.
func (a Applier) Release(ctx context.Context, live client.Object, finalizers ...string) error {
	have := live.GetFinalizers()
	left := slices.DeleteFunc(slices.Clone(have), func(f string) bool { return slices.Contains(finalizers, f) })
	if len(left) == len(have) {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "finalizers": left,
	}})
	if err != nil {
		return err
	}
	return a.Client.Patch(ctx, blank(live), client.RawPatch(types.MergePatchType, body), client.FieldOwner(a.Manager))
}
