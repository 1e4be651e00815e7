// Package apply writes to the API server by server-side apply, and only when something would change.
package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Applier applies with one field manager: one controller and kind each (writers.md).
type Applier struct {
	Client  client.Client
	Manager string
}

// Option changes how one apply is built or sent.
type Option func(*options)

type options struct {
	keep  map[string]bool
	force bool
}

// Keep leaves a zero value in the apply where its path is one of these: names joined by dots beneath the applied part,
// list entries skipped over, as in "volumeStatus.target". For what a schema requires, and for a false or 0 that says
// something.
func Keep(paths ...string) Option {
	return func(o *options) {
		for _, p := range paths {
			o.keep[p] = true
		}
	}
}

// Force takes fields from other managers; only where writers.md says so.
func Force() Option { return func(o *options) { o.force = true } }

// Status makes the fields under .status that this manager owns exactly those of status, a pointer to the kind's
// status struct: zero values are left out, fields it owned before and no longer sets are dropped. live is the object
// as observed, with its managedFields; nothing is sent when it shows that nothing would change. A conflict with
// another manager, and an object that has changed since, or was deleted and made anew, are errors for which
// apierrors.IsConflict holds. After a write live has the new resource version, and the fields it had.
func (a Applier) Status(ctx context.Context, live client.Object, status any, opts ...Option) error {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("converting status: %w", err)
	}
	o := gather(opts)
	return a.apply(ctx, live, "status", map[string]any{"status": pruned(fields, "", o.keep)}, o)
}

// Metadata are the parts of an object's metadata that a manager may own.
type Metadata struct {
	Labels, Annotations map[string]string
	Finalizers          []string
}

// Metadata is Status for labels, annotations and finalizers. A finalizer that another manager set as well, the
// object's creator for one, stays.
func (a Applier) Metadata(ctx context.Context, live client.Object, m Metadata, opts ...Option) error {
	fields := map[string]any{}
	if len(m.Labels) > 0 {
		fields["labels"] = anyMap(m.Labels)
	}
	if len(m.Annotations) > 0 {
		fields["annotations"] = anyMap(m.Annotations)
	}
	for _, f := range m.Finalizers {
		list, _ := fields["finalizers"].([]any)
		fields["finalizers"] = append(list, f)
	}
	return a.apply(ctx, live, "", map[string]any{"metadata": fields}, gather(opts))
}

func gather(opts []Option) options {
	o := options{keep: map[string]bool{}}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

func anyMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}

// apply sends fields, a tree from the object's root, to the object itself or its subresource.
func (a Applier) apply(ctx context.Context, live client.Object, subresource string, fields map[string]any, o options) error {
	settled, err := a.settled(live, subresource, fields)
	if err != nil || settled {
		return err
	}
	body, err := a.body(live, fields)
	if err != nil {
		return err
	}
	answer := blank(live)
	if err := a.send(ctx, answer, subresource, client.RawPatch(types.ApplyPatchType, body), o.force); err != nil {
		return err
	}
	live.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

func (a Applier) send(ctx context.Context, to client.Object, subresource string, patch client.Patch, force bool) error {
	if subresource == "" {
		opts := []client.PatchOption{client.FieldOwner(a.Manager)}
		if force {
			opts = append(opts, client.ForceOwnership)
		}
		return a.Client.Patch(ctx, to, patch, opts...)
	}
	opts := []client.SubResourcePatchOption{client.FieldOwner(a.Manager)}
	if force {
		opts = append(opts, client.ForceOwnership)
	}
	return a.Client.SubResource(subresource).Patch(ctx, to, patch, opts...)
}

// blank returns an object of live's own type and name to take an answer: so a client that waits for its cache to catch
// up with its writes knows which cache.
func blank(live client.Object) client.Object {
	out := reflect.New(reflect.TypeOf(live).Elem()).Interface().(client.Object)
	out.SetNamespace(live.GetNamespace())
	out.SetName(live.GetName())
	return out
}

// body adds to fields what names the object. The API server doesn't look at the UID in an apply to the status of a
// custom resource, so it is the resource version that keeps a namesake from being written.
func (a Applier) body(live client.Object, fields map[string]any) ([]byte, error) {
	gvk, err := apiutil.GVKForObject(live, a.Client.Scheme())
	if err != nil {
		return nil, err
	}
	metadata := map[string]any{"name": live.GetName(), "uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion()}
	if live.GetNamespace() != "" {
		metadata["namespace"] = live.GetNamespace()
	}
	object := map[string]any{"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "metadata": metadata}
	for part, value := range fields {
		if part != "metadata" {
			object[part] = value
			continue
		}
		for k, v := range value.(map[string]any) {
			metadata[k] = v
		}
	}
	return json.Marshal(object)
}
