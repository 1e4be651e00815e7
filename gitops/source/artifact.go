package source

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"

	"github.com/opencontainers/go-digest"
)

// Artifact is what a source of Flux holds: a gzipped tar.
type Artifact struct {
	// Of names the source in errors.
	Of string
	// URL, Digest and Revision are those of its status.
	URL, Digest, Revision string
	Limits                Limits
	// Known is a revision that need not be fetched again.
	Known string
}

// Fetch is that of Source. Nothing is unpacked before its digest is found right.
func (a Artifact) Fetch(ctx context.Context) (*Checkout, error) {
	if a.Known != "" && a.Known == a.Revision {
		return nil, ErrUnchanged
	}
	want, err := digest.Parse(a.Digest)
	if err != nil {
		return nil, fmt.Errorf("%w: the digest %q of the artifact of %s is none: it must be sha256, sha384 or sha512 and its hexadecimal digits", ErrRefused, a.Digest, a.Of)
	}
	if u, err := url.Parse(a.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%w: the URL of the artifact of %s must be http or https and hold no credentials", ErrRefused, a.Of)
	}
	dir, err := temporary()
	if err != nil {
		return nil, err
	}
	c, err := a.fetch(ctx, dir, want)
	if err == nil {
		return c, nil
	}
	where := fmt.Sprintf("fetching the artifact %s of %s from %s", a.Revision, a.Of, withoutQuery(a.URL))
	if errors.Is(err, ErrRefused) {
		err = &Refused{Revision: a.Revision, err: err}
	} else {
		err = errors.New(withoutQuery(err.Error()))
	}
	return nil, errors.Join(fmt.Errorf("%s: %w", where, err), os.RemoveAll(dir))
}

func (a Artifact) fetch(ctx context.Context, dir string, want digest.Digest) (*Checkout, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return nil, err
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", answer.Status)
	}
	left := &budget{limits: a.Limits}
	archive, err := save(dir, answer.Body, left)
	if err != nil {
		return nil, err
	}
	if err := checkDigest(archive, want); err != nil {
		return nil, err
	}
	if err := unpack(archive, files(dir, left)); err != nil {
		return nil, err
	}
	return opened(dir, a.Revision)
}

func checkDigest(archive string, want digest.Digest) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	got, err := want.Algorithm().FromReader(f)
	if err == nil && got != want {
		err = fmt.Errorf("%w: its digest is %s and not %s", ErrRefused, got, want)
	}
	return err
}

// query is the part of a URL that may hold a signature or token.
var query = regexp.MustCompile(`\?[^\s"]+`)

// withoutQuery leaves out of a text what URLs in it have behind the question mark.
func withoutQuery(text string) string { return query.ReplaceAllString(text, "?…") }
