package apply

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// Release takes finalizers off an object, whoever put them there. It fails where the object is no longer the one that
// was seen, or its finalizers are others.
func (a Applier) Release(ctx context.Context, live client.Object, finalizers ...string) error {
	have := live.GetFinalizers()
	left := slices.DeleteFunc(slices.Clone(have), func(f string) bool { return slices.Contains(finalizers, f) })
	if len(left) == len(have) {
		return nil
	}
	body, err := json.Marshal([]operation{
		{"test", "/metadata/uid", live.GetUID()},
		{"test", "/metadata/finalizers", have},
		{"replace", "/metadata/finalizers", left},
	})
	if err != nil {
		return err
	}
	object := blank(live)
	return a.Client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, body), client.FieldOwner(a.Manager))
}
