// Package source fetches one commit of a Git repository into a directory of its own. The server and the repository are
// hostile: what is written is bounded, and a link that leads out of the repository is refused.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

var (
	// ErrRef says that the repository answers but has no such branch, tag, version or commit.
	ErrRef = errors.New("no such ref")
	// ErrRefused says that what the repository holds is not accepted: too much, or a link that leads out.
	ErrRefused = errors.New("the commit is refused")
	// ErrUnchanged says that the ref still leads to the revision that is known.
	ErrUnchanged = errors.New("the revision is known")
)

// Ref is the commit, or what is followed to find it; one field is set.
type Ref struct{ Branch, Tag, SemVer, Commit string }

func (r Ref) String() string {
	switch {
	case r.Commit != "":
		return "commit " + r.Commit
	case r.SemVer != "":
		return "version " + r.SemVer
	case r.Tag != "":
		return "tag " + r.Tag
	}
	return "branch " + r.Branch
}

// Limits bound what one fetch writes, pack and checkout together.
type Limits struct {
	Bytes int64
	Files int
}

// DefaultLimits are 256 MiB and 50,000 files.
var DefaultLimits = Limits{Bytes: 256 << 20, Files: 50_000}

// Git is a repository reached over http or https.
type Git struct {
	URL string
	Ref Ref
	// Credentials hold username and password, or bearerToken, and optionally ca.crt. They are sent over https only.
	Credentials map[string][]byte
	Limits      Limits
	// Known is a revision that need not be fetched again: ErrUnchanged is returned for it.
	Known string
}

// Checkout is one commit on disk.
type Checkout struct {
	// Revision is <branch or tag>@sha1:<commit>, or sha1:<commit> where the commit was named.
	Revision string
	// Files are those of the commit. Opening one that is reached by a link out of them fails.
	Files fs.FS

	dir  string
	root *os.Root
}

// Close removes the checkout.
func (c *Checkout) Close() error {
	return errors.Join(c.root.Close(), os.RemoveAll(c.dir))
}

// Refused is the error of a commit that is not accepted: ErrRefused, and which one it is.
type Refused struct {
	// Revision is as in Checkout.
	Revision string
	err      error
}

// Error doesn't say the revision.
func (r *Refused) Error() string { return r.err.Error() }

// Unwrap returns the reason, which wraps ErrRefused.
func (r *Refused) Unwrap() error { return r.err }

// Fetch gets the commit, without history. An error wraps ErrRef or ErrRefused, or tells why the server can't be
// reached; it never holds a credential. Once the commit is known, its refusal is a *Refused.
func (g Git) Fetch(ctx context.Context) (*Checkout, error) {
	u, err := url.Parse(g.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return nil, fmt.Errorf("%w: the URL must be http or https and hold no credentials", ErrRefused)
	}
	auth, err := git.NewAuthOptions(*u, g.Credentials)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	if g.Ref.Commit != "" && g.Known == "sha1:"+g.Ref.Commit {
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
		return nil, errors.Join(fmt.Errorf("fetching %s of %s: %w", g.Ref, g.URL, explain(err, g.Ref)), os.RemoveAll(dir))
	}
	return c, nil
}

// temporary makes the checkout's directory; osfs compares paths with links resolved.
func temporary() (string, error) {
	dir, err := os.MkdirTemp("", "checkout-")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

func (g Git) fetch(ctx context.Context, dir string, auth *git.AuthOptions) (*Checkout, error) {
	left := &budget{limits: g.Limits}
	// The repository's own files lie beside the checkout, so that no kustomization can read them.
	work := bounded{osfs.New(filepath.Join(dir, "tree"), osfs.WithBoundOS()), left}
	store := bounded{osfs.New(filepath.Join(dir, "git"), osfs.WithBoundOS()), left}
	objects := filesystem.NewStorageWithOptions(store, cache.NewObjectLRU(16*cache.MiByte),
		filesystem.Options{LargeObjectThreshold: 1 << 20})
	client, err := gogit.NewClient(dir, auth, gogit.WithStorer(objects), gogit.WithWorkTreeFS(work))
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
	if !git.IsConcreteCommit(*commit) {
		return nil, ErrUnchanged
	}
	root, err := os.OpenRoot(filepath.Join(dir, "tree"))
	if err != nil {
		return nil, err
	}
	return &Checkout{Revision: revision(g.Ref, commit), Files: root.FS(), dir: dir, root: root}, nil
}

func checkout(r Ref) repository.CheckoutStrategy {
	return repository.CheckoutStrategy{Branch: r.Branch, Tag: r.Tag, SemVer: r.SemVer, Commit: r.Commit}
}

func revision(r Ref, c *git.Commit) string {
	if r.Commit != "" {
		return c.Hash.Digest()
	}
	return c.String()
}

// explain turns go-git's ways to say that there is no such ref into ErrRef.
func explain(err error, r Ref) error {
	switch {
	case errors.Is(err, ErrRefused):
		return innermost(err)
	case errors.Is(err, gogit5.NoMatchingRefSpecError{}):
		return ErrRef
	case r.Commit != "" && errors.Is(err, plumbing.ErrObjectNotFound):
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

// innermost leaves out what others wrapped around a refusal: go-git says the URL again.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if _, known := err.(*Refused); known || inner == nil || inner == ErrRefused || !errors.Is(inner, ErrRefused) {
			return err
		}
		err = inner
	}
}
