package bundle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/source"
)

// errNoEarlier is of sources that can't be asked for what they had before.
var errNoEarlier = fmt.Errorf("a source of Flux keeps no earlier artifact, and virt-bundles keeps the last healthy one until it is restarted, and only one of at most %d objects", largest)

// back fills in the objects of the last healthy revision in place of what the source has. After a restart they are
// fetched again, by what names that revision for ever: if the source has it no more, that is said.
func (c *Controller) back(ctx context.Context, r *round, over build.Overlay) error {
	r.seen.Back, r.seen.Revision = true, r.bundle.Status.RolledBack.To
	if known := c.healthy.of(r.bundle, r.with); known.revision == r.seen.Revision {
		return r.use(known.objects)
	}
	at, err := earlier(r.bundle, r.seen.Revision)
	if err != nil {
		return err
	}
	then := *r
	then.bundle = at
	from, _, err := then.source(ctx, built{})
	if err != nil {
		return err
	}
	checkout, err := from.Fetch(ctx)
	if err != nil {
		return fmt.Errorf("fetching the last healthy revision again: %w", r.fits(err))
	}
	if _, hash := parted(checkout.Revision); !strings.HasSuffix(r.seen.Revision, hash) { // a tag that was moved
		return errors.Join(fmt.Errorf("%w: the source has %s in place of the last healthy revision", source.ErrRefused, checkout.Revision), checkout.Close())
	}
	objects, err := build.Overlaid(ctx, checkout.Files, r.bundle.Spec.Path, build.DefaultLimits, over)
	if err := errors.Join(err, checkout.Close()); err != nil {
		return err
	}
	c.healthy.keep(r.bundle, built{variables: r.with, revision: r.seen.Revision, objects: objects})
	return r.use(objects)
}

// earlier is the Bundle as if its source named one revision of it.
func earlier(b *v1alpha1.Bundle, revision string) (*v1alpha1.Bundle, error) {
	at := b.DeepCopy()
	name, digest := parted(revision)
	_, hash, ok := strings.Cut(digest, ":")
	switch s := &at.Spec.Source; {
	case !ok:
		return nil, fmt.Errorf("%w: revision %s names no hash", source.ErrRefused, revision)
	case s.Git != nil && s.Git.Verify != nil && signsTags(s.Git.Verify.Mode):
		s.Git.Ref = tagged(name) // whose signature is the tag's
	case s.Git != nil:
		s.Git.Ref = v1alpha1.GitRef{Commit: hash}
	case s.OCI != nil:
		s.OCI.Ref = v1alpha1.OCIRef{Digest: digest}
	default:
		return nil, errNoEarlier
	}
	return at, nil
}

// parted returns what was followed to a revision, "" where it was named itself, and its digest.
func parted(revision string) (name, digest string) {
	at := strings.LastIndex(revision, "@")
	return revision[:max(at, 0)], revision[at+1:]
}

func tagged(name string) v1alpha1.GitRef {
	if strings.HasPrefix(name, "refs/") {
		return v1alpha1.GitRef{Name: name}
	}
	return v1alpha1.GitRef{Tag: name}
}

// remember keeps what a healthy revision was built to, for going back to it.
func (c *Controller) remember(r *round, next v1alpha1.BundleStatus) {
	on := r.bundle.Spec.Rollback != nil && r.bundle.Spec.Rollback.OnFailure
	if !on || r.seen.Back || r.seen.Revision == "" || next.LastHealthyRevision != r.seen.Revision {
		return
	}
	if k := c.builds.last(r.bundle); k.revision == r.seen.Revision {
		c.healthy.keep(r.bundle, k)
	}
}

// stays tells whether the Bundle has gone back from what its source has.
func (r *round) stays() bool { return plan.Stays(r.bundle, r.seen.Revision) }
