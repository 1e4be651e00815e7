package bundle

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/gitops/build"
)

// Content fetches and builds what a Bundle names, for who applies it in the Bundle's place: all is read with the rights of
// c. The revision is told as in the Bundle's status. An error that a further try gets again wraps source.ErrRefused or
// build.ErrRefused.
func Content(ctx context.Context, c client.Client, b *v1alpha1.Bundle) (objects []build.Object, revision string, err error) {
	ctx, cancel := context.WithTimeout(ctx, plan.Timeout(b))
	defer cancel()
	r := &round{bundle: b, client: c}
	over, err := r.overlay(ctx)
	if err != nil {
		return nil, "", err
	}
	from, _, err := r.source(ctx, built{})
	if err != nil {
		return nil, "", err
	}
	checkout, err := from.Fetch(ctx)
	if err != nil {
		return nil, "", r.fits(err)
	}
	objects, err = build.Overlaid(ctx, checkout.Files, b.Spec.Path, build.DefaultLimits, over)
	return objects, checkout.Revision, errors.Join(err, checkout.Close())
}
