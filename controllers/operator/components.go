package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	v1 "kubevirt.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle"
	"virtstack.io/virtstack/controllers/operator/plan"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/source"
	"virtstack.io/virtstack/machine/names"
)

// content is what the Bundle led to that a KubeVirt takes its components from. Forgetting it costs a fetch.
type content struct {
	uid        types.UID
	generation int64
	at         time.Time
	every      time.Duration
	revision   string
	manifests  []byte
	stale      string // why it is not known whether there is something newer, "" if that is known
	rejected   string // why what is newer isn't taken, "" if nothing is
}

// errContent says that the components can't be taken from there until somebody changes something.
var errContent = errors.New("annotation " + names.Components)

// components returns what the KubeVirt's annotation names, nil where it has none and the operator's own are used. Where
// they can't be fetched now, what was there before stands, if it is known, and says why.
func (c *Controller) components(ctx context.Context, kv *v1.KubeVirt, now time.Time) (*content, error) {
	name := kv.Annotations[names.Components]
	if name == "" {
		return nil, nil
	}
	var b v1alpha1.Bundle
	err := c.live.Get(ctx, client.ObjectKey{Namespace: names.Namespace, Name: name}, &b)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%w: reading Bundle %s/%s: %w", errContent, names.Namespace, name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("annotation %s: reading Bundle %s/%s: %w", names.Components, names.Namespace, name, err)
	}
	if !b.Spec.Suspend {
		return nil, fmt.Errorf("%w: Bundle %s/%s: spec.suspend: Invalid value: false: must be true: virt-operator applies what it names, and nobody else may",
			errContent, names.Namespace, name)
	}
	known := c.content
	same := known != nil && known.uid == b.UID && known.generation == b.Generation
	if same && now.Before(known.at.Add(known.every)) {
		return known, nil
	}
	objects, revision, err := bundle.Content(ctx, c.client, &b)
	if errors.Is(err, source.ErrRefused) || errors.Is(err, build.ErrRefused) {
		return c.reject(&b, now, fmt.Errorf("%w: Bundle %s/%s: %s: %w", errContent, names.Namespace, name, revision, err))
	}
	if err != nil {
		err = fmt.Errorf("annotation %s: Bundle %s/%s: %w", names.Components, names.Namespace, name, err)
		if !same {
			return nil, err
		}
		known.at, known.stale = now, err.Error()
		return known, nil
	}
	if missing := plan.Incomplete(identities(objects)); missing != "" {
		return c.reject(&b, now, fmt.Errorf("%w: Bundle %s/%s: %s: %s", errContent, names.Namespace, name, revision, missing))
	}
	fresh := &content{uid: b.UID, generation: b.Generation, at: now, every: v1alpha1.DefaultBundleInterval, revision: revision}
	if b.Spec.Interval != nil {
		fresh.every = b.Spec.Interval.Duration
	}
	if fresh.manifests, err = manifests(objects); err != nil {
		return nil, err
	}
	c.content = fresh
	return fresh, nil
}

// reject returns what the Bundle led to before, which says why that is not the newest, and the error where nothing is known.
func (c *Controller) reject(b *v1alpha1.Bundle, now time.Time, why error) (*content, error) {
	if c.content == nil || c.content.uid != b.UID {
		return nil, why
	}
	c.content.generation, c.content.at, c.content.stale, c.content.rejected = b.Generation, now, "", why.Error()
	return c.content, nil
}

func identities(objects []build.Object) (all []string) {
	for _, o := range objects {
		all = append(all, o.GetKind()+" "+o.GetName())
	}
	return all
}

func manifests(objects []build.Object) ([]byte, error) {
	var all bytes.Buffer
	for _, o := range objects {
		data, err := o.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		all.WriteString("---\n")
		all.Write(data)
	}
	return all.Bytes(), nil
}
