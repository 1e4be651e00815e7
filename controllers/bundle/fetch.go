package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"virtstack.io/virtstack/api/v1alpha1"
	"virtstack.io/virtstack/controllers/bundle/plan"
	"virtstack.io/virtstack/gitops/build"
	"virtstack.io/virtstack/gitops/source"
)

// built fills in revision and objects.
func (c *Controller) built(ctx context.Context, r *round) error {
	over, err := r.overlay(ctx)
	if err != nil {
		return err
	}
	r.with = digest(over.Variables)
	known := c.builds.of(r.bundle, r.with)
	from, trust, err := r.source(ctx, known)
	if err != nil {
		return err
	}
	checkout, err := from.Fetch(ctx)
	if errors.Is(err, source.ErrUnchanged) {
		if r.seen.Revision = known.revision; r.stays() {
			return c.back(ctx, r, over)
		}
		return r.use(known.objects)
	}
	if refused := (*source.Refused)(nil); errors.As(err, &refused) {
		r.seen.Revision = refused.Revision
		return fmt.Errorf("%s: %w", refused.Revision, err)
	}
	if err != nil {
		return r.fits(err)
	}
	if r.seen.Revision = checkout.Revision; r.stays() {
		c.builds.keep(r.bundle, built{variables: r.with, revision: checkout.Revision, trust: trust})
		return errors.Join(checkout.Close(), c.back(ctx, r, over))
	}
	objects, err := build.Overlaid(ctx, checkout.Files, r.bundle.Spec.Path, build.DefaultLimits, over)
	if err := errors.Join(err, checkout.Close()); err != nil {
		return err
	}
	c.builds.keep(r.bundle, built{variables: r.with, revision: checkout.Revision, trust: trust, objects: objects})
	return r.use(objects)
}

// source returns what the Bundle's spec.source names. What it needs is read with the account's own rights. Trust tells
// the keys that a signature was checked with from others: what was accepted by others is not known.
func (r *round) source(ctx context.Context, known built) (from source.Source, trust string, err error) {
	switch s := r.bundle.Spec.Source; {
	case s.Git != nil:
		return r.git(ctx, s.Git, known)
	case s.OCI != nil:
		from, err := r.oci(ctx, s.OCI, known)
		return from, "", err
	case s.SourceRef != nil:
		return r.artifact(ctx, s.SourceRef, known)
	}
	return nil, "", fmt.Errorf("%w: spec.source names no source", source.ErrRefused)
}

func (r *round) git(ctx context.Context, g *v1alpha1.GitSource, known built) (from source.Source, trust string, err error) {
	credentials, err := r.secret(ctx, "spec.source.git.secretRef", g.SecretRef)
	if err != nil {
		return nil, "", err
	}
	verify, err := r.verification(ctx, g.Verify)
	if err != nil {
		return nil, "", err
	}
	trust = fingerprint(verify)
	if trust != known.trust {
		known.revision = ""
	}
	ref := source.Ref{Branch: g.Ref.Branch, Tag: g.Ref.Tag, SemVer: g.Ref.SemVer, Name: g.Ref.Name, Commit: g.Ref.Commit}
	return source.Git{
		URL: g.URL, Ref: ref, Credentials: credentials, Verify: verify, Limits: source.DefaultLimits, Known: known.revision,
	}, trust, nil
}

func (r *round) oci(ctx context.Context, o *v1alpha1.OCISource, known built) (source.Source, error) {
	credentials, err := r.secret(ctx, "spec.source.oci.secretRef", o.SecretRef)
	if err != nil {
		return nil, err
	}
	certificates, err := r.secret(ctx, "spec.source.oci.certSecretRef", o.CertSecretRef)
	if err != nil {
		return nil, err
	}
	return source.OCI{
		URL: o.URL, Ref: source.OCIRef{Tag: o.Ref.Tag, SemVer: o.Ref.SemVer, Digest: o.Ref.Digest}, MediaType: o.LayerMediaType,
		Credentials: credentials, Certificates: certificates, Insecure: o.Insecure, Limits: source.DefaultLimits, Known: known.revision,
	}, nil
}

// verification reads the keys of those who may sign; nil: no signature is asked for.
func (r *round) verification(ctx context.Context, v *v1alpha1.GitVerification) (*source.Verify, error) {
	if v == nil {
		return nil, nil
	}
	keys, err := r.secret(ctx, "spec.source.git.verify.secretRef", v.SecretRef)
	if err == nil && v.SecretRef == nil && v.ConfigMapRef != nil {
		keys, err = r.configMap(ctx, "spec.source.git.verify.configMapRef", v.ConfigMapRef)
	}
	if err != nil {
		return nil, err
	}
	return &source.Verify{Commit: v.Mode != v1alpha1.VerifyTag, Tag: signsTags(v.Mode), Keys: keys}, nil
}

func signsTags(m v1alpha1.VerifyMode) bool {
	return m == v1alpha1.VerifyTag || m == v1alpha1.VerifyTagAndHEAD
}

func fingerprint(v *source.Verify) string {
	if v == nil {
		return ""
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(v.Keys)) {
		fmt.Fprintf(h, "%q %q\n", name, v.Keys[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// secret reads a Secret of the Bundle's namespace; nil for none.
func (r *round) secret(ctx context.Context, field string, ref *v1alpha1.LocalObjectReference) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	var s corev1.Secret
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: r.bundle.Namespace, Name: ref.Name}, &s); err != nil {
		return nil, fmt.Errorf("%s: reading Secret %s/%s as account %s: %w", field, r.bundle.Namespace, ref.Name, accountOf(r.bundle), err)
	}
	return s.Data, nil
}

func (r *round) configMap(ctx context.Context, field string, ref *v1alpha1.LocalObjectReference) (map[string][]byte, error) {
	var m corev1.ConfigMap
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: r.bundle.Namespace, Name: ref.Name}, &m); err != nil {
		return nil, fmt.Errorf("%s: reading ConfigMap %s/%s as account %s: %w", field, r.bundle.Namespace, ref.Name, accountOf(r.bundle), err)
	}
	data := maps.Clone(m.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for name, content := range m.Data {
		data[name] = []byte(content)
	}
	return data, nil
}

// fits says which object holds what doesn't fit.
func (r *round) fits(err error) error {
	git, oci := r.bundle.Spec.Source.Git, r.bundle.Spec.Source.OCI
	switch {
	case errors.Is(err, source.ErrCredentials) && git != nil:
		return r.of("git.secretRef", "Secret", git.SecretRef, err)
	case errors.Is(err, source.ErrKeys) && git.Verify.SecretRef != nil:
		return r.of("git.verify.secretRef", "Secret", git.Verify.SecretRef, err)
	case errors.Is(err, source.ErrKeys):
		return r.of("git.verify.configMapRef", "ConfigMap", git.Verify.ConfigMapRef, err)
	case errors.Is(err, source.ErrCertificates):
		return r.of("oci.certSecretRef", "Secret", oci.CertSecretRef, err)
	case errors.Is(err, source.ErrCredentials):
		return r.of("oci.secretRef", "Secret", oci.SecretRef, err)
	}
	return err
}

func (r *round) of(field, kind string, ref *v1alpha1.LocalObjectReference, err error) error {
	if ref == nil {
		return fmt.Errorf("spec.source.%s: there is none: %w", field, err)
	}
	return fmt.Errorf("spec.source.%s: %s %s/%s: %w", field, kind, r.bundle.Namespace, ref.Name, err)
}

// cause sorts what went wrong before anything was applied.
func cause(r *round, err error) *plan.Failure {
	if errors.Is(err, build.ErrRefused) {
		return &plan.Failure{Reason: plan.BuildFailed, Message: r.seen.Revision + ": " + err.Error(), Final: true}
	}
	reason := plan.FetchFailed
	if errors.Is(err, source.ErrUnverified) {
		reason = plan.VerificationFailed
	}
	if errors.Is(err, errVariables) {
		reason = plan.BuildFailed
	}
	return &plan.Failure{Reason: reason, Message: err.Error(), Final: errors.Is(err, source.ErrRefused)}
}
