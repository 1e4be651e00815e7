package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/fluxcd/pkg/version"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// OCIRef is the artifact, or what is followed to find it. Of several, the digest goes before the version, and the
// version before the tag.
type OCIRef struct{ Tag, SemVer, Digest string }

func (r OCIRef) String() string {
	switch {
	case r.Digest != "":
		return "digest " + r.Digest
	case r.SemVer != "":
		return "version " + r.SemVer
	}
	return "tag " + r.Tag
}

// OCI is an artifact in a registry.
type OCI struct {
	// URL is oci://<registry>/<repository>.
	URL string
	Ref OCIRef
	// MediaType is that of the layer; empty: any that is a gzipped tar.
	MediaType string
	// Credentials hold .dockerconfigjson, Certificates ca.crt; nil: none.
	Credentials, Certificates map[string][]byte
	// Insecure allows plain http, over which credentials are never sent.
	Insecure bool
	Limits   Limits
	// Known is a revision that need not be fetched again.
	Known string
}

// Fetch is that of Source.
func (o OCI) Fetch(ctx context.Context) (*Checkout, error) {
	path, ok := strings.CutPrefix(o.URL, "oci://")
	options := []name.Option{name.StrictValidation}
	if o.Insecure {
		options = append(options, name.Insecure)
	}
	repository, err := name.NewRepository(path, options...)
	if err != nil || !ok {
		return nil, fmt.Errorf("%w: the URL %s must be oci://<registry>/<repository>, without tag or digest", ErrRefused, o.URL)
	}
	ctx, done := context.WithCancel(ctx)
	defer done()
	left := &budget{limits: o.Limits}
	r := registry{OCI: o, repository: repository, left: left}
	if r.options, err = o.options(ctx, repository, left); err != nil {
		return nil, err
	}
	dir, err := temporary()
	if err != nil {
		return nil, err
	}
	c, err := r.fetch(dir)
	if err == nil {
		return c, nil
	}
	if !errors.Is(err, ErrUnchanged) {
		err = fmt.Errorf("fetching %s of %s: %w", o.Ref, o.URL, explainOCI(err))
	}
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// explainOCI leaves of foreign errors the text, without what may be a token in it.
func explainOCI(err error) error {
	answer := (*transport.Error)(nil)
	switch {
	case errors.Is(err, ErrRefused), errors.Is(err, ErrRef):
		return innermost(err)
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%w: %s", ErrRef, withoutQuery(err.Error()))
	}
	return errors.New(withoutQuery(err.Error()))
}

// registry is one fetch.
type registry struct {
	OCI
	repository name.Repository
	options    []remote.Option
	left       *budget
}

func (r registry) fetch(dir string) (*Checkout, error) {
	reference, tag, err := r.resolve()
	if err != nil {
		return nil, err
	}
	found, err := remote.Get(reference, r.options...)
	if err != nil {
		return nil, err
	}
	revision := found.Digest.String()
	if tag != "" {
		revision = tag + "@" + revision
	}
	if revision == r.Known {
		return nil, ErrUnchanged
	}
	if err := r.unpack(found, dir); errors.Is(err, ErrRefused) {
		return nil, &Refused{Revision: revision, err: innermost(err)}
	} else if err != nil {
		return nil, err
	}
	return opened(dir, revision)
}

// resolve returns what to ask for, and the tag if it is one.
func (r registry) resolve() (name.Reference, string, error) {
	tag := r.Ref.Tag
	switch {
	case r.Ref.Digest != "":
		return r.repository.Digest(r.Ref.Digest), "", nil
	case r.Ref.SemVer != "":
		tags, err := remote.List(r.repository, r.options...)
		if err != nil {
			return nil, "", err
		}
		if tag, err = highest(tags, r.Ref.SemVer); err != nil {
			return nil, "", err
		}
	}
	return r.repository.Tag(tag), tag, nil
}

// highest returns the tag with the highest version in the range.
func highest(tags []string, within string) (string, error) {
	constraint, err := semver.NewConstraint(within)
	if err != nil {
		return "", fmt.Errorf("%w: %q is no range of versions, such as 1.x or >=1.2.0 <2.0.0", ErrRefused, within)
	}
	var best *semver.Version
	for _, tag := range tags {
		v, err := version.ParseVersion(tag)
		if err == nil && constraint.Check(v) && (best == nil || v.GreaterThan(best)) {
			best = v
		}
	}
	if best == nil {
		return "", fmt.Errorf("%w: none of its %d tags is in the range", ErrRef, len(tags))
	}
	return best.Original(), nil
}

// unpack fetches the layer and writes its files. go-containerregistry checks its digest and size; only a layer that is
// whole and right is unpacked.
func (r registry) unpack(found *remote.Descriptor, dir string) error {
	image, err := found.Image()
	if err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	at := slices.IndexFunc(manifest.Layers, func(d v1.Descriptor) bool { return r.wanted(string(d.MediaType)) })
	if at < 0 {
		return fmt.Errorf("%w: it has no layer of %s; its layers are of %s", ErrRefused, r.kind(), kinds(manifest.Layers))
	}
	layer, err := image.LayerByDigest(manifest.Layers[at].Digest)
	if err != nil {
		return err
	}
	content, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()                        // it was only read
	archive, err := save(dir, content, &budget{limits: r.Limits}) // the transport counts what comes
	if err != nil {
		return err
	}
	return unpack(archive, files(dir, r.left))
}

func (r registry) wanted(kind string) bool {
	if r.MediaType != "" {
		return kind == r.MediaType
	}
	return strings.HasSuffix(kind, "tar+gzip") || strings.HasSuffix(kind, ".tar.gzip")
}

func (r registry) kind() string {
	if r.MediaType != "" {
		return "media type " + r.MediaType
	}
	return "a media type that is a gzipped tar"
}

func kinds(layers []v1.Descriptor) string {
	var all []string
	for _, l := range layers[:min(len(layers), 5)] {
		all = append(all, string(l.MediaType))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}
