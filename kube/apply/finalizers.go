package apply

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Relabel patches labels and annotations: a value sets a key, nil drops it. It fails where the object is no longer the
// one that was seen.
func (a Applier) Relabel(ctx context.Context, live client.Object, labels, annotations map[string]*string) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "labels": labels, "annotations": annotations,
	}})
	if err != nil {
		return err
	}
	answer := blank(live)
	if err := a.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, body), client.FieldOwner(a.Manager)); err != nil {
		return err
	}
	live.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

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
