package source

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/git"
	"github.com/fluxcd/pkg/git/gogit"
	"github.com/fluxcd/pkg/git/repository"
	"github.com/go-git/go-billy/v5/osfs"
	gogit5 "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Ref is the commit, or what is followed to find it. Of several, the commit goes before the name, the name before the
// version, the version before the tag, the tag before the branch; a commit with a branch must be on it.
type Ref struct{ Branch, Tag, SemVer, Name, Commit string }

func (r Ref) String() string {
	switch {
	case r.Commit != "":
		return "commit " + r.Commit
	case r.Name != "":
		return "ref " + r.Name
	case r.SemVer != "":
		return "version " + r.SemVer
	case r.Tag != "":
		return "tag " + r.Tag
	}
	return "branch " + r.Branch
}

// only returns the ref with what counts and nothing else.
func (r Ref) only() Ref {
	switch {
	case r.Commit != "":
		return Ref{Commit: r.Commit, Branch: r.Branch}
	case r.Name != "":
		return Ref{Name: r.Name}
	case r.SemVer != "":
		return Ref{SemVer: r.SemVer}
	case r.Tag != "":
		return Ref{Tag: r.Tag}
	}
	return Ref{Branch: r.Branch}
}

// Git is a repository reached over http, https or ssh.
type Git struct {
	URL string
	Ref Ref
	// Credentials hold username and password, or bearerToken, and optionally ca.crt, tls.crt and tls.key; for ssh identity
	// and known_hosts, and password. They are sent over https and ssh only.
	Credentials map[string][]byte
	// Verify is which signature the commit must have; nil: none.
	Verify *Verify
	Limits Limits
	// Known is a revision that need not be fetched again: ErrUnchanged is returned for it.
	Known string
}

// Fetch is that of Source, without history.
func (g Git) Fetch(ctx context.Context) (*Checkout, error) {
	u, err := url.Parse(g.URL)
	if err != nil || !acceptable(u) {
		return nil, fmt.Errorf("%w: the URL must be http, https or ssh and hold no credentials", ErrRefused)
	}
	auth, err := authOptions(u, g.Credentials)
	if err != nil {
		return nil, err
	}
	if g.Verify != nil {
		if _, _, err := g.Verify.sorted(); err != nil {
			return nil, err
		}
	}
	g.Ref = g.Ref.only()
	if g.Ref.Commit != "" && g.Known == revision(g.Ref, &git.Commit{Hash: git.Hash(g.Ref.Commit)}) {
		return nil, ErrUnchanged
	}
	dir, err := temporary()
	if err != nil {
		return nil, err
	}
	c, err := g.fetch(ctx, dir, auth)
	if errors.Is(err, ErrUnchanged) {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("fetching %s of %s: %w", g.Ref, g.URL, explain(err, g.Ref, u)), os.RemoveAll(dir))
	}
	return c, nil
}

// Pinned fetches a commit of a repository that anybody can read, within DefaultLimits.
func Pinned(ctx context.Context, url, commit string) (*Checkout, error) {
	return Git{URL: url, Ref: Ref{Commit: commit}, Limits: DefaultLimits}.Fetch(ctx)
}

// acceptable tells whether it is a URL of a kind that is fetched from, without a password. The user of ssh is none.
func acceptable(u *url.URL) bool {
	_, password := u.User.Password()
	switch u.Scheme {
	case "http", "https":
		return u.User == nil
	case "ssh":
		return !password
	}
	return false
}

func (g Git) fetch(ctx context.Context, dir string, auth *git.AuthOptions) (*Checkout, error) {
	left := &budget{limits: g.Limits}
	// The repository's own files lie beside the checkout, so that no kustomization can read them.
	store := bounded{osfs.New(filepath.Join(dir, "git"), osfs.WithBoundOS()), left}
	objects := filesystem.NewStorageWithOptions(store, cache.NewObjectLRU(16*cache.MiByte),
		filesystem.Options{LargeObjectThreshold: 1 << 20})
	options := []gogit.ClientOption{gogit.WithStorer(objects), gogit.WithWorkTreeFS(files(dir, left))}
	if auth.Transport == git.SSH {
		options = append(options, gogit.WithProxy(deadline(ctx)))
	}
	client, err := gogit.NewClient(dir, auth, options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	commit, err := client.Clone(ctx, g.URL, repository.CloneConfig{
		CheckoutStrategy:   checkout(g.Ref),
		ShallowClone:       true,
		LastObservedCommit: g.Known,
	})
	if errors.Is(err, ErrRefused) {
		return nil, named(g.Ref, objects, err)
	}
	if err != nil {
		return nil, err
	}
	if commit == nil {
		return nil, fmt.Errorf("%w: the repository is empty", ErrRef)
	}
	if !git.IsConcreteCommit(*commit) || revision(g.Ref, commit) == g.Known {
		return nil, ErrUnchanged
	}
	if err := g.Verify.check(g.Ref, commit); err != nil {
		return nil, &Refused{Revision: revision(g.Ref, commit), err: err}
	}
	return opened(dir, revision(g.Ref, commit))
}

func checkout(r Ref) repository.CheckoutStrategy {
	return repository.CheckoutStrategy{Branch: r.Branch, Tag: r.Tag, SemVer: r.SemVer, RefName: r.Name, Commit: r.Commit}
}

func revision(r Ref, c *git.Commit) string {
	switch {
	case r.Commit != "":
		return c.Hash.Digest()
	case r.Name != "":
		return r.Name + "@" + c.Hash.Digest()
	}
	return c.String()
}

// explain turns go-git's ways to say that there is no such ref into ErrRef, and that of ssh to refuse a host into words.
func explain(err error, r Ref, u *url.URL) error {
	if host := refusedHost(err, u.Host); host != nil {
		return host
	}
	switch {
	case errors.Is(err, ErrRefused):
		return innermost(err)
	case errors.Is(err, gogit5.NoMatchingRefSpecError{}):
		return ErrRef
	case r.Commit != "" && errors.Is(err, plumbing.ErrObjectNotFound):
		return ErrRef
	case r.Name != "" && strings.Contains(err.Error(), "unable to resolve ref"):
		return ErrRef
	case r.SemVer != "" && strings.Contains(err.Error(), "no match found for semver"):
		return ErrRef
	}
	return err
}

// named says which commit is refused, as far as the clone has come to know it.
func named(r Ref, objects storer.ReferenceStorer, err error) error {
	head, unknown := storer.ResolveReference(objects, plumbing.HEAD)
	if unknown != nil {
		return err
	}
	c := &git.Commit{Hash: git.Hash(head.Hash().String())}
	switch {
	case r.Tag != "":
		c.Reference = plumbing.NewTagReferenceName(r.Tag).String()
	case r.Branch != "":
		c.Reference = plumbing.NewBranchReferenceName(r.Branch).String()
	}
	return &Refused{Revision: revision(r, c), err: innermost(err)}
}
